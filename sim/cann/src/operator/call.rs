//! Phase one: takes the arguments, checks them against the operator's document, and leaves an executor.

use std::ops::{Deref, RangeInclusive};
use std::sync::{Arc, Mutex};

use crate::descriptor::executor::{self, Executor};
use crate::descriptor::tensor::Tensor;
use crate::descriptor::{array, list, tensor};
use crate::element::Element;
use crate::handle::Handle;
use crate::runtime::context::current;
use crate::runtime::error::{
    Failure, INNER_NULL, PACKAGE_MISSING, PARAMETER_INVALID, PARAMETER_NULL, TILING, answer,
};
use crate::settings::{self, Profile};

/// What an operator is to do, and what it wants beside.
pub(crate) struct Plan {
    /// Bytes of workspace. No document says how much: callers have to ask.
    pub(crate) workspace: usize,
    pub(crate) work: Box<dyn Fn() -> Result<(), Failure> + Send + Sync>,
}

impl Plan {
    pub(crate) fn new(
        workspace: usize,
        work: impl Fn() -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        Ok(Self { workspace, work: Box::new(work) })
    }
}

/// An argument that is a tensor.
#[derive(Clone)]
pub(crate) struct Arg {
    name: &'static str,
    tensor: Arc<Tensor>,
}

impl Deref for Arg {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.tensor
    }
}

/// A phase one under way.
pub(crate) struct Call {
    document: &'static str,
    pub(crate) profile: Profile,
    tensors: Vec<(&'static str, Handle, Arc<Tensor>)>,
    scalars: Vec<(&'static str, Handle)>,
}

/// Phase one of `operator`, whose limits come from `document`.
pub(crate) fn phase_one(
    operator: &'static str,
    document: &'static str,
    workspace: Option<&mut u64>,
    executor: Option<&mut Handle>,
    plan: impl FnOnce(&mut Call) -> Result<Plan, Failure>,
) -> i32 {
    let run = || {
        let context = current()?;
        if settings::hides(operator) {
            let text = "the operator's package is not installed: the fault that was asked for";
            return Err(Failure::new(PACKAGE_MISSING, text));
        }
        let null = |name: &str| Failure::new(PARAMETER_NULL, format!("{name} is null"));
        let workspace = workspace.ok_or_else(|| null("workspaceSize"))?;
        let place = executor.ok_or_else(|| null("executor"))?;
        let mut call =
            Call { document, profile: settings::profile(), tensors: Vec::new(), scalars: Vec::new() };
        let plan = plan(&mut call)?;
        let needed = plan.workspace as u64;
        *workspace = needed;
        *place = executor::add(Executor {
            operator,
            context,
            workspace: needed,
            tensors: call.tensors,
            scalars: call.scalars,
            task: Arc::from(plan.work),
            repeatable: Mutex::new(false),
        });
        Ok(())
    };
    answer(operator, run())
}

impl Call {
    /// A tensor that must be there.
    pub(crate) fn tensor(&mut self, name: &'static str, handle: Handle) -> Result<Arg, Failure> {
        let tensor = tensor::find(handle).map_err(|failure| failure.within(name))?;
        self.tensors.push((name, handle, tensor.clone()));
        Ok(Arg { name, tensor })
    }

    /// A tensor that may be null.
    pub(crate) fn optional(&mut self, name: &'static str, handle: Handle) -> Result<Option<Arg>, Failure> {
        if handle == 0 { Ok(None) } else { self.tensor(name, handle).map(Some) }
    }

    /// The value of a scalar that must be there.
    pub(crate) fn scalar(&mut self, name: &'static str, handle: Handle) -> Result<f64, Failure> {
        let value = array::scalar(handle).map_err(|failure| failure.within(name))?;
        self.scalars.push((name, handle));
        Ok(value)
    }

    /// The tensors of a list that must be there.
    pub(crate) fn list(&mut self, name: &'static str, handle: Handle) -> Result<Vec<Arg>, Failure> {
        let members = list::find(handle).map_err(|failure| failure.within(name))?;
        let kept = members.into_iter().map(|(handle, tensor)| {
            self.tensors.push((name, handle, tensor.clone()));
            Arg { name, tensor }
        });
        Ok(kept.collect())
    }

    /// The one tensor of a list.
    pub(crate) fn single(&mut self, name: &'static str, handle: Handle) -> Result<Arg, Failure> {
        let mut members = self.list(name, handle)?;
        match (members.pop(), members.len()) {
            (Some(only), 0) => Ok(only),
            (_, rest) => {
                self.unmodelled(&format!("{name} of {} tensors, one is modelled", rest + 1))?;
                Err(self.failure(PARAMETER_INVALID, format!("{name}: no tensor")))
            }
        }
    }

    /// The one tensor of a list that may be null.
    pub(crate) fn optional_single(
        &mut self,
        name: &'static str,
        handle: Handle,
    ) -> Result<Option<Arg>, Failure> {
        if handle == 0 { Ok(None) } else { self.single(name, handle).map(Some) }
    }

    /// The values of an integer array, none if it is null.
    pub(crate) fn integers(&self, name: &str, handle: Handle) -> Result<Option<Vec<i64>>, Failure> {
        if handle == 0 {
            return Ok(None);
        }
        array::integers(handle).map(Some).map_err(|failure| failure.within(name))
    }

    fn failure(&self, code: i32, text: String) -> Failure {
        Failure::new(code, format!("{text} ({})", self.document))
    }

    /// Refuses what the document forbids: 161002.
    pub(crate) fn require(&self, holds: bool, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if holds { Ok(()) } else { Err(self.failure(PARAMETER_INVALID, text())) }
    }

    /// Refuses what the kernel does not do: 561002.
    pub(crate) fn tiles(&self, holds: bool, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if holds { Ok(()) } else { Err(self.failure(TILING, text())) }
    }

    /// The same where the document has a code of its own for it: 561103.
    pub(crate) fn shapes(&self, holds: bool, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if holds { Ok(()) } else { Err(self.failure(INNER_NULL, text())) }
    }

    /// Refuses what CANN may do and this library does not.
    pub(crate) fn unmodelled(&self, text: &str) -> Result<(), Failure> {
        Err(Failure::new(TILING, format!("{text}: the stand-in does not model it")))
    }

    /// Arguments that must be null here.
    pub(crate) fn absent(&self, arguments: &[(&str, Handle)]) -> Result<(), Failure> {
        match arguments.iter().find(|(_, handle)| *handle != 0) {
            Some((name, _)) => self.unmodelled(&format!("{name} is given")),
            None => Ok(()),
        }
    }

    pub(crate) fn element(&self, arg: &Arg, allowed: &[Element]) -> Result<(), Failure> {
        self.require(allowed.contains(&arg.element), || {
            let names: Vec<_> = allowed.iter().map(|element| element.name()).collect();
            format!("{}: dtype {}, limit {}", arg.name, arg.element.name(), names.join(", "))
        })
    }

    pub(crate) fn rank(&self, arg: &Arg, allowed: RangeInclusive<usize>) -> Result<(), Failure> {
        let rank = arg.dims.len();
        self.require(allowed.contains(&rank), || {
            format!("{}: {rank} dimensions, limit {} to {}", arg.name, allowed.start(), allowed.end())
        })
    }

    pub(crate) fn shape(&self, arg: &Arg, expected: &[i64]) -> Result<(), Failure> {
        self.require(arg.dims == expected, || {
            format!("{}: shape {:?}, expected {expected:?}", arg.name, arg.dims)
        })
    }

    /// Where the document does not speak of views.
    pub(crate) fn contiguous(&self, args: &[&Arg]) -> Result<(), Failure> {
        match args.iter().find(|arg| !arg.is_contiguous()) {
            Some(arg) => self.unmodelled(&format!("{}: strides {:?}", arg.name, arg.strides)),
            None => Ok(()),
        }
    }

    pub(crate) fn not_empty(&self, args: &[&Arg]) -> Result<(), Failure> {
        match args.iter().find(|arg| arg.count() == 0) {
            Some(arg) => Err(self.failure(PARAMETER_INVALID, format!("{}: empty, {:?}", arg.name, arg.dims))),
            None => Ok(()),
        }
    }
}
