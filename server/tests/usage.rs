//! Help, versions, and arguments that make no sense.

mod support;

use support::{Place, json};

#[test]
fn help_names_every_command_and_option() {
    let place = Place::new();
    let help = place.halite(&["--help"]).success();
    for word in
        ["run", "chat", "serve", "pull", "devices", "bench", "eval", "tokenize", "Exit status", "RUST_LOG"]
    {
        assert!(help.contains(word), "{word} in {help}");
    }
    let run = place.halite(&["run", "--help"]).success();
    for option in [
        "--model",
        "--system",
        "--raw",
        "--max-tokens",
        "--stop",
        "--temperature",
        "--top-k",
        "--top-p",
        "--min-p",
        "--seed",
        "--weights",
        "--kv",
        "--context",
        "--threads",
        "--tier",
        "--device",
        "--kernels",
        "--cache",
        "--verbose",
    ] {
        assert!(run.contains(option), "{option} in {run}");
    }
    let serve = place.halite(&["serve", "--help"]).success();
    for option in [
        "--model",
        "--name",
        "--host",
        "--port",
        "--api-key",
        "HALITE_API_KEY",
        "--max-sequences",
        "--max-waiting",
        "--max-connections",
        "--max-body",
        "--max-bodies",
        "--read-timeout",
        "--write-timeout",
        "--shutdown-timeout",
        "--context",
        "--kv-tokens",
    ] {
        assert!(serve.contains(option), "{option} in {serve}");
    }
    let chat = place.halite(&["chat", "--help"]).success();
    for option in ["--system", "--max-tokens", "--stop", "--temperature", "--seed", "--context", "/help"] {
        assert!(chat.contains(option), "{option} in {chat}");
    }
    let bench = place.halite(&["bench", "model", "--help"]).success();
    for option in [
        "--prompt",
        "--generate",
        "--batch",
        "--threads",
        "--runs",
        "--weights",
        "--no-weights-cache",
        "--json",
    ] {
        assert!(bench.contains(option), "{option} in {bench}");
    }
    let eval = place.halite(&["eval", "perplexity", "--help"]).success();
    for option in ["--tokens", "--per-token", "--json", "--weights"] {
        assert!(eval.contains(option), "{option} in {eval}");
    }
}

#[test]
fn the_version_is_the_packages() {
    let version = Place::new().halite(&["--version"]).success();
    assert_eq!(version, format!("halite {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_arguments_are_named() {
    let place = Place::new();
    let cases: [(&[&str], &[&str]); 26] = [
        (&[], &["Usage", "run"]),
        (&["sing"], &["sing"]),
        (&["run"], &["PROMPT"]),
        (&["run", "--max-tokens", "0", "A"], &["--max-tokens", "0"]),
        (&["run", "--max-tokens", "many", "A"], &["--max-tokens", "many"]),
        (&["run", "--stop", "", "A"], &["--stop"]),
        (&["run", "--threads", "0", "A"], &["--threads"]),
        (&["run", "--threads", "1025", "A"], &["--threads"]),
        (&["run", "--weights", "int3", "A"], &["--weights", "w8a8", "w4a8", "bf16", "f32"]),
        (&["run", "--kv", "i8", "A"], &["--kv", "f32", "f16", "bf16", "int8"]),
        (&["run", "--attention", "int4", "A"], &["--attention", "float", "int8", "int8-values"]),
        (&["run", "--tier", "sse9", "A"], &["--tier", "portable", "avx2", "avx-vnni", "avx512", "amx"]),
        (
            &["run", "--device", "gpu", "A"],
            &["--device", "wgpu:N, cuda, cuda:N or cuda-sim", "halite devices"],
        ),
        (&["run", "--device", "wgpu:first", "A"], &["--device", "cpu, wgpu, wgpu:N", "halite devices"]),
        (&["run", "--device", "cuda:first", "A"], &["--device", "cuda:N", "halite devices"]),
        (&["run", "--raw", "--system", "B", "A"], &["--raw", "--system"]),
        (&["serve", "--port", "65536"], &["--port"]),
        (&["serve", "--port", "http"], &["--port"]),
        (&["serve", "--max-waiting", "0"], &["--max-waiting"]),
        (&["serve", "--read-timeout", "-1"], &["--read-timeout"]),
        (&["serve", "--read-timeout", "NaN"], &["--read-timeout"]),
        (&["serve", "--api-key", ""], &["--api-key"]),
        (&["chat", "hello"], &["hello"]),
        (&["tokenize"], &["TEXT"]),
        (&["bench", "model"], &["MODEL"]),
        (&["eval", "perplexity", "m.gguf"], &["--tokens"]),
    ];
    for (arguments, parts) in cases {
        place.halite(arguments).usage(parts);
    }
}

#[test]
fn backends_that_are_not_built_in_say_so() {
    let place = Place::new();
    let model = place.model();
    let run = |model: &str, device: &str, parts: &[&str]| {
        place.halite(&["run", "-m", model, "--device", device, "A"]).failure(parts);
    };
    run(&model, "ascend", &["ascend", "planned", "--device cpu"]);
    // Before anything is looked for, or fetched.
    run("no-such-model", "ascend", &["ascend", "--device cpu"]);
    #[cfg(not(feature = "wgpu"))]
    for device in ["wgpu", "wgpu:1"] {
        run(&model, device, &["wgpu", "--features wgpu", "--device cpu"]);
    }
    #[cfg(not(feature = "cuda"))]
    for device in ["cuda", "cuda:1"] {
        run(&model, device, &["cuda", "--features cuda,", "--device cpu"]);
    }
    #[cfg(not(feature = "cuda-sim"))]
    run(&model, "cuda-sim", &["cuda", "--features cuda-sim", "--device cpu"]);
}

#[test]
fn what_is_about_another_device_is_refused() {
    let place = Place::new();
    let model = place.model();
    let run = |device: &str, option: [&str; 2], parts: &[&str]| {
        let run = [&["run", "-m", &model, "--device", device][..], &option, &["A"]].concat();
        place.halite(&run).failure(parts);
    };
    for device in ["wgpu", "cuda", "cuda-sim"] {
        for option in [["--threads", "2"], ["--tier", "portable"]] {
            run(device, option, &["--threads", "--tier", "--device cpu"]);
        }
    }
    let kernels = place.path("");
    for device in ["cpu", "wgpu", "cuda-sim"] {
        run(device, ["--kernels", kernels.to_str().unwrap()], &["--kernels", "--device cuda"]);
    }
    #[cfg(feature = "cuda")]
    run("cuda", ["--kernels", "no-such-folder"], &["--kernels no-such-folder", "halite kernels precompile"]);
}

#[cfg(feature = "wgpu")]
#[test]
fn an_adapter_that_is_not_there_is_told_with_those_that_are() {
    let place = Place::new();
    let model = place.model();
    let reports = json(&place.halite(&["devices", "--json"]).success());
    let adapters = reports[1]["devices"].as_array().expect("an adapter: the tests need one");
    assert!(adapters.iter().any(|adapter| adapter["usable"] == true && adapter["default"] == true));
    let name = adapters[0]["name"].as_str().unwrap();
    let parts = ["there is no adapter 99", name, "halite devices"];
    place.halite(&["run", "-m", &model, "--device", "wgpu:99", "A"]).failure(&parts);
    let text = place.halite(&["devices"]).success();
    assert!(text.contains(&format!("wgpu:0  {name}")) && text.contains("passed its self-test"), "{text}");
}

#[cfg(feature = "cuda")]
#[test]
fn gpus_are_listed_or_what_is_missing_is_said() {
    let place = Place::new();
    let model = place.model();
    let report = &json(&place.halite(&["devices", "--json"]).success())[2];
    assert_eq!((&report["backend"], &report["built"]), (&"cuda".into(), &true.into()));
    let (text, gpus) = (place.halite(&["devices"]).success(), report["devices"].as_array().unwrap());
    // Not hardware.
    assert!(!text.contains("cuda-sim"), "{text}");
    let names = gpus.iter().map(|gpu| gpu["device"].as_str().unwrap());
    let count = halite_cuda::driver::device_count();
    assert!(names.eq((0..count.clone().unwrap_or(0)).map(|number| format!("cuda:{number}"))), "{report}");
    assert!(gpus.iter().all(|gpu| gpu["usable"] == true || gpu["reason"].is_string()), "{report}");
    let missing: Vec<_> = report["missing"].as_array().into_iter().flatten().collect();
    let says = |part: &str| missing.iter().any(|missing| missing.as_str().unwrap().contains(part));
    assert_eq!(says("nvidia-cuda-nvrtc"), halite_cuda::compile::nvrtc_version().is_none(), "{report}");
    assert!(missing.iter().all(|missing| text.contains(missing.as_str().unwrap())), "{text}");
    let expected = match count {
        Ok(_) => "there is no GPU 4000000000".to_owned(),
        Err(error) => {
            assert!(says(&error.to_string()), "{report}");
            error.to_string()
        }
    };
    let run = ["run", "-m", &model, "--device", "cuda:4000000000", "A"];
    place.halite(&run).failure(&["halite devices", &expected]);
}

#[test]
fn sampling_out_of_range_is_named() {
    let place = Place::new();
    let model = place.model();
    for (option, value, name) in [
        ("--temperature", "-1", "temperature"),
        ("--temperature", "NaN", "temperature"),
        ("--top-p", "0", "top_p"),
        ("--top-p", "1.5", "top_p"),
        ("--min-p", "-0.5", "min_p"),
    ] {
        place.halite(&["run", "-m", &model, option, value, "A"]).failure(&[name]);
    }
}

#[test]
fn a_wrong_log_filter_is_named() {
    let place = Place::new();
    let output = place.command(&["devices"]).env("RUST_LOG", "halite=loud=louder").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: RUST_LOG=halite=loud=louder: "));
}

#[test]
fn devices_lists_the_tiers_of_this_machine() {
    let place = Place::new();
    let text = place.halite(&["devices"]).success();
    for word in ["cpu", "portable", "avx2", "avx-vnni", "avx512", "default", "planned"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let reports = json(&place.halite(&["devices", "--json"]).success());
    let backends: Vec<_> = reports.as_array().unwrap().iter().map(|report| &report["backend"]).collect();
    assert_eq!(backends, ["cpu", "wgpu", "cuda", "ascend"]);
    assert_eq!(reports[1]["built"], cfg!(feature = "wgpu"));
    assert_eq!(reports[2]["built"], cfg!(feature = "cuda"));
    let tiers = reports[0]["devices"][0]["tiers"].as_array().unwrap();
    let available: Vec<_> = tiers
        .iter()
        .filter(|tier| tier["available"] == true)
        .map(|tier| tier["tier"].as_str().unwrap())
        .collect();
    let mut expected: Vec<_> = halite_cpu::Tier::available().map(|tier| tier.name()).collect();
    expected.reverse();
    assert_eq!(available, expected);
    let default: Vec<_> =
        tiers.iter().filter(|tier| tier["default"] == true).map(|tier| &tier["tier"]).collect();
    assert_eq!(default, [halite_cpu::Tier::best().name()]);
}
