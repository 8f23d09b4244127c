//! Runs a body of PTX with a few registers set.

use halite_ptx::ir::Module;
use halite_ptx::{Arguments, Checks, Error, Fault, FaultKind, LaunchShape, Machine, Options};

/// A kernel `k` with this body. It has `shared` bytes at `s`, and at the body: `%d0` the input, `%d1` the output, `%r0` the
/// thread (`%tid.x`), `%d2` 4 times it, `%d3` and `%d4` the thread's own word of input and output.
pub(crate) fn source(shared: u32, body: &str) -> String {
    let shared = if shared == 0 { String::new() } else { format!(".shared .align 128 .b8 s[{shared}];") };
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
        .visible .entry k(.param .u64 in, .param .u64 out) {{\n\
        .reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<48>; .reg .b64 %d<32>; .reg .f32 %f<8>;\n{shared}\n\
        ld.param.u64 %d0, [in];\nld.param.u64 %d1, [out];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %d2, %r0, 4;\n\
        add.s64 %d3, %d0, %d2;\nadd.s64 %d4, %d1, %d2;\n{body}\nret;\n}}\n"
    )
}

/// One host thread, everything looked for.
pub(crate) fn options() -> Options {
    Options::default().with_threads(1)
}

/// A kernel, its input, and where its output goes.
pub(crate) struct Run {
    pub(crate) options: Options,
    pub(crate) shared: u32,
    pub(crate) body: String,
    pub(crate) shape: LaunchShape,
    pub(crate) input: Vec<u32>,
    pub(crate) outputs: usize,
}

/// A run of one block.
pub(crate) fn block(threads: u32, body: &str) -> Run {
    Run {
        options: options(),
        shared: 0,
        body: body.to_owned(),
        shape: LaunchShape::linear(1, threads),
        input: (0..threads.max(64)).collect(),
        outputs: threads as usize,
    }
}

impl Run {
    pub(crate) fn shared(mut self, bytes: u32) -> Run {
        self.shared = bytes;
        self
    }

    pub(crate) fn input(mut self, input: impl IntoIterator<Item = u32>) -> Run {
        self.input = input.into_iter().collect();
        self
    }

    pub(crate) fn outputs(mut self, words: usize) -> Run {
        self.outputs = words;
        self
    }

    pub(crate) fn checks(mut self, checks: Checks) -> Run {
        self.options = self.options.with_checks(checks);
        self
    }

    /// The words of output: `0xffff_ffff` where nothing was written.
    pub(crate) fn result(&self) -> Result<Vec<u32>, Error> {
        let text = source(self.shared, &self.body);
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut machine = Machine::new(self.options.clone());
        let module = machine.load(module)?;
        let bytes: Vec<u8> = self.input.iter().flat_map(|word| word.to_le_bytes()).collect();
        let input = machine.allocate_with(&bytes)?;
        let output = machine.allocate(4 * self.outputs as u64)?;
        machine.launch(&module, "k", self.shape, &Arguments::new().pointer(input).pointer(output))?;
        let mut bytes = vec![0; 4 * self.outputs];
        machine.read(output, &mut bytes)?;
        Ok(bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect())
    }

    pub(crate) fn output(&self) -> Vec<u32> {
        self.result().unwrap_or_else(|error| panic!("{error}"))
    }

    /// All faults; the first is at the line that says HERE, if one does.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let Err(Error::Faults(faults)) = self.result() else { panic!("no fault:\n{}", self.body) };
        let text = source(self.shared, &self.body);
        if let Some(line) = text.lines().position(|line| line.contains("HERE")) {
            assert_eq!(faults.first().place.line as usize, line + 1, "{faults}");
        }
        faults.all().to_vec()
    }

    pub(crate) fn fault(&self) -> FaultKind {
        self.faults()[0].kind.clone()
    }
}
