//! `replay TARGET FOLDER…`: runs a target once on every file of the folders, without a fuzzer; for coverage, and to see what a
//! finding says.

use std::ffi::OsString;
use std::{env, fs, io};

use arbitrary::{Arbitrary, Unstructured};
use rl_fuzz::states::Input;

fn main() -> io::Result<()> {
    let mut arguments = env::args_os().skip(1);
    let check = match arguments.next().as_deref().and_then(|target| target.to_str()) {
        Some("arguments") => rl_fuzz::arguments::check,
        Some("states") => |bytes: &[u8]| {
            if let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(bytes)) {
                rl_fuzz::states::check(&input);
            }
        },
        _ => return Err(io::Error::other("usage: replay arguments|states FOLDER…")),
    };
    let folders: Vec<OsString> = arguments.collect();
    for folder in folders {
        for file in fs::read_dir(folder)? {
            check(&fs::read(file?.path())?);
        }
    }
    Ok(())
}
