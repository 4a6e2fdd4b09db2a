//! Go for the test control plane where it is not installed, or too old: the toolchain is a module like others, and
//! comes from the module proxy. Its checksum is the one of Go's public checksum database.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};

/// The oldest that `tests/cluster/go.mod` takes.
const OLDEST: (u32, u32) = (1, 26);

/// The module's version without its platform, and its checksums by platform, as `go.sum` would have them.
const VERSION: &str = "v0.0.1-go1.26.8";
const CHECKSUMS: [(&str, &str); 4] = [
    ("linux-amd64", "h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM="),
    ("linux-arm64", "h1:sYL/O6MqS68ML0kjsQ36WoYIpJqkw60TxizWUYUKQMc="),
    ("darwin-amd64", "h1:7/9KPPN8PckcA9s91hm2jmQMhzW4KyTJXHIs45L0C9M="),
    ("darwin-arm64", "h1:dFjGhY6f8DTsY8/rLchUTDRRfjJP4pCrGCwxvHFT2Fg="),
];

/// Where modules come from unless `GOPROXY` says otherwise, as in Go itself.
const DEFAULT_PROXY: &str = "https://proxy.golang.org";

/// A toolchain has 70 MB.
const LARGEST: u64 = 512 << 20;
const TIMEOUT: Duration = Duration::from_secs(900);

/// Whether the Go on the path is there and new enough.
pub(crate) fn is_installed() -> bool {
    let said = Command::new("go").args(["env", "GOVERSION"]).stderr(Stdio::null()).output();
    said.is_ok_and(|said| said.status.success() && is_new_enough(&String::from_utf8_lossy(&said.stdout)))
}

/// `go1.26.8`, `go1.27rc1`.
pub(crate) fn is_new_enough(version: &str) -> bool {
    let numbers = version.trim().trim_start_matches("go");
    let mut numbers = numbers.split(|character: char| !character.is_ascii_digit()).map(|number| number.parse().ok());
    matches!((numbers.next(), numbers.next()), (Some(Some(major)), Some(Some(minor))) if (major, minor) >= OLDEST)
}

/// Whether there is one for this platform that may be fetched.
pub(crate) fn can_be_fetched() -> bool {
    pinned().is_some() && proxies(&proxy_list()).next().is_some()
}

/// The directory of the toolchain's programs; it is fetched once and kept beside the control plane.
pub(crate) fn programs() -> Result<PathBuf, String> {
    let (version, checksum) = pinned().ok_or("there is no Go toolchain for this platform; install Go 1.26")?;
    let cache = cache().ok_or("there is no home directory; set PUSHBACK_CACHE")?;
    let toolchain = cache.join(&version);
    if !toolchain.is_dir() {
        fetch(&proxy_list(), &version, checksum, &toolchain)?;
    }
    Ok(toolchain.join("bin"))
}

fn pinned() -> Option<(String, &'static str)> {
    let system = if std::env::consts::OS == "macos" { "darwin" } else { std::env::consts::OS };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let platform = format!("{system}-{machine}");
    let (_, checksum) = CHECKSUMS.iter().find(|(known, _)| *known == platform)?;
    Some((format!("{VERSION}.{platform}"), checksum))
}

/// As in `tests/cluster/build`.
fn cache() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("PUSHBACK_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("pushback")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/pushback")))?;
    Some(cache.join("test-cluster"))
}

fn proxy_list() -> String {
    std::env::var("GOPROXY").ok().filter(|list| !list.is_empty()).unwrap_or_else(|| DEFAULT_PROXY.to_owned())
}

/// The proxies of a `GOPROXY`. The toolchain is in no repository: `direct` has nothing, as `off` has.
fn proxies(list: &str) -> impl Iterator<Item = &str> {
    let entries = list.split([',', '|']).map(str::trim);
    entries.take_while(|entry| *entry != "off").filter(|entry| !entry.is_empty() && *entry != "direct")
}

/// Fetches a version of the module `golang.org/toolchain` and unpacks it to `toolchain`, all or nothing.
pub(crate) fn fetch(proxies_list: &str, version: &str, checksum: &str, toolchain: &Path) -> Result<(), String> {
    let failed = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    let cache = toolchain.parent().ok_or("no directory to keep it in")?;
    fs::create_dir_all(cache).map_err(|error| failed(cache, error))?;
    let mut refusals = Vec::new();
    let mut archive = None;
    for proxy in proxies(proxies_list) {
        match read(proxy, version) {
            Ok(bytes) => {
                archive = Some(bytes);
                break;
            }
            Err(refusal) => refusals.push(refusal),
        }
    }
    let archive = archive.ok_or_else(|| {
        let refusals = if refusals.is_empty() { "GOPROXY names no proxy".to_owned() } else { refusals.join("; ") };
        format!("Go is not installed, and its toolchain {version} cannot be fetched: {refusals}")
    })?;
    let building =
        tempfile::Builder::new().prefix("fetching.").tempdir_in(cache).map_err(|error| failed(cache, error))?;
    let place = building.path().join("go");
    let found = unpack(archive, version, &place)?;
    if found != checksum {
        return Err(format!("the toolchain {version} has the checksum {found}, and {checksum} is expected"));
    }
    match fs::rename(&place, toolchain) {
        // Another process was faster.
        Err(_) if toolchain.is_dir() => Ok(()),
        renamed => renamed.map_err(|error| failed(toolchain, error)),
    }
}

fn read(proxy: &str, version: &str) -> Result<Vec<u8>, String> {
    let address = format!("{}/golang.org/toolchain/@v/{version}.zip", proxy.trim_end_matches('/'));
    if let Some(path) = address.strip_prefix("file://") {
        return fs::read(path).map_err(|error| format!("{path}: {error}"));
    }
    // The address can hold a password, so it is not shown.
    let tls = ureq::tls::TlsConfig::builder()
        .root_certs(ureq::tls::RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let config = ureq::Agent::config_builder().tls_config(tls).timeout_global(Some(TIMEOUT)).build();
    let answer = ureq::Agent::new_with_config(config).get(&address).call();
    let bytes = answer.and_then(|answer| answer.into_body().into_with_config().limit(LARGEST).read_to_vec());
    bytes.map_err(|error| format!("the module proxy: {error}"))
}

/// Unpacks the archive of a module and returns its checksum: the one of all files' names and contents.
fn unpack(archive: Vec<u8>, version: &str, place: &Path) -> Result<String, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the archive of the toolchain {version}: {error}");
    let mut archive = zip::ZipArchive::new(Cursor::new(archive)).map_err(|error| failed(&error))?;
    let prefix = format!("golang.org/toolchain@{version}/");
    let mut lines = BTreeMap::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| failed(&error))?;
        if entry.is_dir() {
            continue;
        }
        let name = entry.name().map_err(|error| failed(&error))?.into_owned();
        let inside = entry.enclosed_name().and_then(|path| Some(path.strip_prefix(&prefix).ok()?.to_owned()));
        let inside = inside.ok_or_else(|| failed(&format!("it holds {name:?}")))?;
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(|error| failed(&error))?;
        let line = format!("{:x}  {name}\n", Sha256::digest(&content));
        lines.insert(name, line);
        let path = place.join(&inside);
        let folder = path.parent().unwrap_or(place);
        fs::create_dir_all(folder).and_then(|()| fs::write(&path, content)).map_err(|error| failed(&error))?;
        // Archives of modules keep no modes.
        #[cfg(unix)]
        if inside.starts_with("bin") || inside.starts_with("pkg/tool") {
            let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(&path, executable).map_err(|error| failed(&error))?;
        }
    }
    let all: String = lines.into_values().collect();
    Ok(format!("h1:{}", BASE64.encode(Sha256::digest(all))))
}
