//! Architectures of GPUs, as the compiler spells them.

use std::{fmt, str::FromStr};

use super::CompileError;

/// A GPU's compute capability, and whether code may use what only this generation has: `sm_90a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Architecture {
    major: u32,
    minor: u32,
    specific: bool,
}

impl Architecture {
    /// The oldest one that the kernels are written for: it has `cp.async` and BF16 products.
    pub const OLDEST: Architecture = Architecture { major: 8, minor: 0, specific: false };

    /// The architecture of a device of this compute capability: the specific one (`sm_90a`) from 9.0 on, since code is
    /// compiled for the device that runs it.
    pub fn of_device(major: u32, minor: u32) -> Self {
        Architecture { major, minor, specific: major >= 9 }
    }

    /// The compute capability.
    pub fn capability(self) -> (u32, u32) {
        (self.major, self.minor)
    }

    /// Whether a device of this compute capability runs machine code made for this architecture: the specific ones run
    /// where they were made for, others on every later minor version too.
    pub fn runs_on(self, (major, minor): (u32, u32)) -> bool {
        let reaches = if self.specific { minor == self.minor } else { minor >= self.minor };
        major == self.major && reaches
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}{}", self.major, self.minor, if self.specific { "a" } else { "" })
    }
}

impl FromStr for Architecture {
    type Err = CompileError;

    fn from_str(text: &str) -> Result<Self, CompileError> {
        let unknown = || CompileError::Architecture { text: text.to_owned() };
        let number = text.strip_prefix("sm_").ok_or_else(unknown)?;
        let (digits, specific) = match number.strip_suffix('a') {
            Some(digits) => (digits, true),
            None => (number, false),
        };
        if digits.len() < 2 || digits.len() > 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(unknown());
        }
        let number: u32 = digits.parse().map_err(|_| unknown())?;
        let found = Architecture { major: number / 10, minor: number % 10, specific };
        if found.capability() < Self::OLDEST.capability() { Err(unknown()) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_is_read_as_it_is_written() {
        for text in ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120a"] {
            let architecture: Architecture = text.parse().unwrap();
            assert_eq!(architecture.to_string(), text);
        }
        assert_eq!("sm_120a".parse::<Architecture>().unwrap().capability(), (12, 0));
    }

    #[test]
    fn what_is_no_architecture_or_too_old_is_refused_by_name() {
        for text in
            ["", "90a", "sm_", "sm_9", "sm_75", "sm_90b", "sm_90aa", "sm_+90", "sm_99999", "compute_90"]
        {
            let error = text.parse::<Architecture>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")) && error.contains("sm_80"), "{error}");
        }
    }

    #[test]
    fn code_runs_on_what_it_was_made_for() {
        let architecture = |text: &str| text.parse::<Architecture>().unwrap();
        assert!(architecture("sm_80").runs_on((8, 9)));
        assert!(!architecture("sm_89").runs_on((8, 6)));
        assert!(!architecture("sm_80").runs_on((9, 0)));
        assert!(architecture("sm_100a").runs_on((10, 0)));
        assert!(!architecture("sm_100a").runs_on((10, 3)));
        for (capability, text) in [((8, 6), "sm_86"), ((9, 0), "sm_90a"), ((12, 1), "sm_121a")] {
            let of_device = Architecture::of_device(capability.0, capability.1);
            assert_eq!(of_device, architecture(text));
            assert!(of_device.runs_on(capability));
        }
    }
}
