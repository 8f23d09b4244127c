//! The `halite` program.

fn main() -> std::process::ExitCode {
    halite_server::run(std::env::args_os())
}
