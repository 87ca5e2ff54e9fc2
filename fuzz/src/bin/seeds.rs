//! `seeds FOLDER`: writes real inputs of each target to a folder of its name.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).ok_or_else(|| io::Error::other("usage: seeds FOLDER"))?;
    let arguments = rl_fuzz::seeds::ARGUMENTS.map(|text| text.as_bytes().to_vec());
    write(&Path::new(&folder).join("arguments"), &arguments)?;
    write(&Path::new(&folder).join("states"), &rl_fuzz::seeds::inputs())
}

fn write(folder: &Path, inputs: &[Vec<u8>]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, input) in inputs.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:04}")), input)?;
    }
    Ok(())
}
