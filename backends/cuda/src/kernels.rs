//! Kernels that are compiled and loaded: each once, when it is first launched.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use halite_hal::{Error, Result};

use crate::{
    compile::{Compiler, Program, Source},
    driver::{Context, Kernel, Module},
};

/// A value that a source is compiled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    Number(i64),
    /// A type's name, or another word.
    Name(&'static str),
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constant::Number(number) => number.fmt(f),
            Constant::Name(name) => f.write_str(name),
        }
    }
}

/// A source with its constants, cheap to compare: what a launch is looked up by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    source: &'static Source,
    constants: Vec<(&'static str, Constant)>,
}

impl Variant {
    pub(crate) fn new(source: &'static Source) -> Self {
        Variant { source, constants: Vec::new() }
    }

    pub(crate) fn define(&mut self, name: &'static str, value: Constant) {
        self.constants.push((name, value));
    }

    pub(crate) fn program(&self) -> Program {
        let program = Program::new(self.source);
        self.constants.iter().fold(program, |program, (name, value)| program.define(name, value))
    }
}

/// A module and those of its kernels that were asked for.
#[derive(Debug, Default)]
struct Loaded {
    module: Option<Module>,
    kernels: Vec<(&'static str, Kernel)>,
}

/// The kernels of a device.
#[derive(Debug)]
pub(crate) struct Kernels {
    compiler: Compiler,
    /// For the interpreter; a GPU gets machine code.
    ptx: bool,
    loaded: Mutex<HashMap<Variant, Arc<Mutex<Loaded>>>>,
}

impl Kernels {
    pub(crate) fn new(compiler: Compiler, ptx: bool) -> Self {
        Kernels { compiler, ptx, loaded: Mutex::default() }
    }

    /// A kernel of a variant, ready for so much dynamic shared memory.
    pub(crate) fn get(
        &self,
        context: &Context,
        variant: &Variant,
        entry: &'static str,
        dynamic_shared: u32,
    ) -> Result<Kernel> {
        let slot = {
            let mut all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            match all.get(variant) {
                Some(slot) => slot.clone(),
                None => all.entry(variant.clone()).or_default().clone(),
            }
        };
        // Whoever needs the same kernel waits for it; the others compile theirs meanwhile.
        let mut loaded = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let known = loaded.kernels.iter().position(|(name, _)| *name == entry);
        if let Some((_, kernel)) = known.and_then(|known| loaded.kernels.get(known))
            && kernel.attributes().dynamic_shared >= dynamic_shared
        {
            return Ok(kernel.clone());
        }
        let module = match &loaded.module {
            Some(module) => module.clone(),
            None => self.load(context, &variant.program())?,
        };
        let kernel = context.kernel(&module, entry, dynamic_shared)?;
        loaded.module = Some(module);
        loaded.kernels.retain(|(name, _)| *name != entry);
        loaded.kernels.push((entry, kernel.clone()));
        Ok(kernel)
    }

    fn load(&self, context: &Context, program: &Program) -> Result<Module> {
        let device = context.description();
        let failed = |cause: String| Error::Device { device: device.name.clone(), cause };
        // Else machines without NVRTC would lack it.
        let of_a_test = cfg!(test) && program.source().file.starts_with("test/");
        if !of_a_test && !crate::programs().contains(program) {
            return Err(failed(format!(
                "{program} is not among `programs()`, which are precompiled: add it there"
            )));
        }
        let image = if self.ptx {
            self.compiler.ptx(program, device.architecture)
        } else {
            self.compiler.cubin(program, device.architecture)
        };
        context.load(&image.map_err(|error| failed(error.to_string()))?)
    }
}
