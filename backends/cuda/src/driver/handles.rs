//! Counted handles to a driver's objects. What an object is only its driver knows; whoever drops the last handle frees it.

use std::{any::Any, fmt, sync::Arc};

use super::{DriverError, KernelAttributes};

/// A driver's own type, hidden.
#[derive(Clone)]
struct Object(Arc<dyn Any + Send + Sync>);

impl Object {
    fn get<T: Any>(&self, what: &'static str) -> Result<&T, DriverError> {
        self.0.downcast_ref().ok_or(DriverError::Foreign { what })
    }
}

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $what:literal $(, $(#[$field_doc:meta])* $field:ident: $type:ty)*) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            object: Object,
            $($field: $type,)*
        }

        impl $name {
            /// A handle to a driver's object, which drops it with the last of its clones.
            pub fn new<T: Any + Send + Sync>(object: T $(, $field: impl Into<$type>)*) -> Self {
                $name { object: Object(Arc::new(object)) $(, $field: $field.into())* }
            }

            /// The driver's object.
            ///
            /// # Errors
            /// [`DriverError::Foreign`]: it is not of this type, hence not of this driver.
            pub fn get<T: Any>(&self) -> Result<&T, DriverError> {
                self.object.get($what)
            }

            $($(#[$field_doc])*
            pub fn $field(&self) -> &$type {
                &self.$field
            })*
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))$(.field(stringify!($field), &self.$field))*.finish_non_exhaustive()
            }
        }
    };
}

handle!(
    /// What work is queued on.
    Stream, "stream"
);
handle!(
    /// A point in a stream's order.
    Event, "event"
);
handle!(
    /// Loaded code.
    Module, "module"
);
handle!(
    /// A kernel of a module.
    Kernel, "kernel",
    /// Its name.
    name: Arc<str>,
    /// What it takes.
    attributes: KernelAttributes
);
handle!(
    /// Captured work.
    Graph, "graph"
);
handle!(
    /// Device memory.
    Memory, "device memory",
    /// Its address on the device; 0 where it has no bytes.
    address: u64,
    /// Its size.
    bytes: u64
);
handle!(
    /// Host memory that the device copies from and to by itself.
    Pinned, "pinned memory",
    /// Its size.
    bytes: u64
);

impl Memory {
    /// Whether two handles are of the same memory.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.object.0, &other.object.0)
    }
}
