//! SHA-256 of what is read.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// Bytes read and hashed between two reports of progress.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

/// Hashes the rest of `reader` and returns how many bytes that was. `report` hears before each read how many came.
pub(crate) fn hash_into(
    reader: &mut impl Read,
    hasher: &mut Sha256,
    report: &mut dyn FnMut(u64),
) -> io::Result<u64> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        report(bytes);
        let count = match reader.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(buffer.get(..count).unwrap_or_default());
        bytes += count as u64;
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands over a few bytes at a time, after an interruption.
    struct Drip<'a>(&'a [u8], bool);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let count = self.0.len().min(3);
            self.0.read(&mut buffer[..count])
        }
    }

    #[test]
    fn every_byte_counts_however_it_comes() {
        // FIPS 180-2, appendix B.2.
        let text = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        let (mut hasher, mut reports) = (Sha256::new(), Vec::new());
        let bytes = hash_into(&mut Drip(text, false), &mut hasher, &mut |bytes| reports.push(bytes)).unwrap();
        assert_eq!((bytes, reports.first(), reports.last()), (56, Some(&0), Some(&56)));
        let expected = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
        assert_eq!(hex(&hasher.finalize()), expected);
    }
}
