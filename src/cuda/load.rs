//! Loads NVRTC's library from the folder in which it is installed. Knows its C interface, but not what is compiled.
//!
//! cudarc is not used to load NVRTC. It looks for `libnvrtc.so` on the loader's path first, where a CUDA of the system would take precedence over the pinned
//! one whose digest is in the key, and it panics if there is none. Driver calls do use cudarc.
//!
//! `libnvrtc-builtins` must be loaded first: NVRTC requests it by name only, and the loader then returns the loaded one. Both stay loaded forever, and a
//! process has one of each. A request for another one is an error and needs a new process.
#![expect(unsafe_code, reason = "a C library is loaded and called")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

type Program = *mut c_void;

/// NVRTC's functions. Their library is never unloaded.
pub(super) struct Nvrtc {
    place: PathBuf,
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    log: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ptx_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    ptx: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    add_name: unsafe extern "C" fn(Program, *const c_char) -> c_int,
    lowered_name: unsafe extern "C" fn(Program, *const c_char, *mut *const c_char) -> c_int,
}

/// The result of a compilation.
pub(super) struct Compilation {
    /// Machine code and the symbol of each entry; none if the compilation failed.
    pub(super) result: Option<(Vec<u8>, Vec<String>)>,
    /// The PTX from which the machine code was made, if it was asked for and the compilation succeeded.
    pub(super) ptx: Option<Vec<u8>>,
    /// The compiler's output.
    pub(super) log: String,
}

/// Why no compilation was started.
pub(super) enum LoadError {
    /// This process has loaded another NVRTC.
    Another(PathBuf),
    /// The library cannot be loaded.
    Broken(String),
}

/// The NVRTC at this path, which is loaded if it is not loaded yet.
pub(super) fn load(nvrtc: &Path, builtins: &Path) -> Result<&'static Nvrtc, LoadError> {
    static LOADED: OnceLock<Result<Nvrtc, String>> = OnceLock::new();
    match LOADED.get_or_init(|| open(nvrtc, builtins)) {
        Ok(loaded) if loaded.place == nvrtc => Ok(loaded),
        Ok(loaded) => Err(LoadError::Another(loaded.place.clone())),
        Err(why) => Err(LoadError::Broken(why.clone())),
    }
}

fn open(nvrtc: &Path, builtins: &Path) -> Result<Nvrtc, String> {
    let library = |path: &Path| {
        // SAFETY: loading runs the library's initializers. The libraries are NVIDIA's, verified against the lockfile or named by the user.
        unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }
            .map_err(|e| format!("could not load `{}`: {e}", path.display()))
    };
    std::mem::forget(library(builtins)?);
    let library = library(nvrtc)?;
    macro_rules! function {
        ($name:literal) => {{
            // SAFETY: the field that receives the pointer has the type that NVRTC's header gives this function, and the library is never unloaded.
            *unsafe { library.get($name) }.map_err(|e| format!("`{}` is not an NVRTC library: {e}", nvrtc.display()))?
        }};
    }
    let loaded = Nvrtc {
        place: nvrtc.to_path_buf(),
        version: function!("nvrtcVersion"),
        error_string: function!("nvrtcGetErrorString"),
        create: function!("nvrtcCreateProgram"),
        destroy: function!("nvrtcDestroyProgram"),
        compile: function!("nvrtcCompileProgram"),
        log_size: function!("nvrtcGetProgramLogSize"),
        log: function!("nvrtcGetProgramLog"),
        cubin_size: function!("nvrtcGetCUBINSize"),
        cubin: function!("nvrtcGetCUBIN"),
        ptx_size: function!("nvrtcGetPTXSize"),
        ptx: function!("nvrtcGetPTX"),
        add_name: function!("nvrtcAddNameExpression"),
        lowered_name: function!("nvrtcGetLoweredName"),
    };
    std::mem::forget(library);
    Ok(loaded)
}

/// Destroys the program when it goes out of scope.
struct Guard<'a>(&'a Nvrtc, Program);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: the program was created, and only this line destroys it.
        unsafe { (self.0.destroy)(&mut self.1) };
    }
}

impl Nvrtc {
    /// The release of NVRTC: (13, 0).
    fn version(&self) -> (i32, i32) {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both point to integers that live across the call.
        unsafe { (self.version)(&mut major, &mut minor) };
        (major, minor)
    }

    fn check(&self, code: c_int, what: &str) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: NVRTC gives a static string for every code, known or not.
        let text = unsafe { CStr::from_ptr((self.error_string)(code)) };
        Err(format!("NVRTC could not {what}: {}", text.to_string_lossy()))
    }

    /// Compiles `source`, with the file name `name`, for the entries. Files are looked up in this thread's working directory.
    ///
    /// # Errors
    /// NVRTC fails in a way other than by a message in its log.
    pub(super) fn compile(
        &self,
        source: &[u8],
        name: &str,
        options: &[String],
        entries: &[&str],
        with_ptx: bool,
    ) -> Result<Compilation, String> {
        let c = |text: &[u8], what: &str| CString::new(text).map_err(|_| format!("{what} holds a zero byte"));
        let (source, name) = (c(source, "the source")?, c(name.as_bytes(), "the name of the source")?);
        // Otherwise a file whose kernels are all `static` has the process id in its symbols.
        let seed = (self.version() >= (12, 9)).then_some("-frandom-seed=kforge");
        let options = seed.into_iter().chain(options.iter().map(String::as_str));
        let options: Vec<CString> = options.map(|o| c(o.as_bytes(), "a flag")).collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let entries: Vec<CString> = entries.iter().map(|e| c(e.as_bytes(), "an entry")).collect::<Result<_, _>>()?;
        let count = c_int::try_from(pointers.len()).map_err(|_| "too many flags".to_string())?;

        let mut program: Program = std::ptr::null_mut();
        // SAFETY: all pointers are valid for the call. The source and the name live until the program is destroyed, because they are declared before it.
        let code = unsafe {
            (self.create)(&mut program, source.as_ptr(), name.as_ptr(), 0, std::ptr::null(), std::ptr::null())
        };
        self.check(code, "take the source")?;
        let guard = Guard(self, program);
        for entry in &entries {
            // SAFETY: the program is alive, and the string ends with a zero.
            self.check(unsafe { (self.add_name)(guard.1, entry.as_ptr()) }, "take an entry")?;
        }
        // SAFETY: `pointers` holds `count` strings that live across the call.
        let compiled = unsafe { (self.compile)(guard.1, count, pointers.as_ptr()) };
        let log = self.bytes(guard.1, self.log_size, self.log, "give its log")?;
        let log = String::from_utf8_lossy(log.strip_suffix(b"\0").unwrap_or(&log)).into_owned();
        if compiled != 0 {
            // A log says more than the code. If it is empty (an internal error), only the code is left.
            if log.trim().is_empty() {
                self.check(compiled, "compile")?;
            }
            return Ok(Compilation { result: None, ptx: None, log });
        }
        let mut symbols = Vec::with_capacity(entries.len());
        for entry in &entries {
            let mut symbol: *const c_char = std::ptr::null();
            // SAFETY: the program is alive and was compiled with this name expression. NVRTC points `symbol` at a string that the program owns.
            self.check(unsafe { (self.lowered_name)(guard.1, entry.as_ptr(), &mut symbol) }, "name an entry's symbol")?;
            // SAFETY: the call succeeded, and the program, which owns the string, is alive.
            symbols.push(unsafe { CStr::from_ptr(symbol) }.to_string_lossy().into_owned());
        }
        let cubin = self.bytes(guard.1, self.cubin_size, self.cubin, "give machine code")?;
        let ptx = match with_ptx {
            true => {
                let text = self.bytes(guard.1, self.ptx_size, self.ptx, "give PTX")?;
                Some(text.strip_suffix(b"\0").unwrap_or(&text).to_vec())
            }
            false => None,
        };
        Ok(Compilation { result: Some((cubin, symbols)), ptx, log })
    }

    fn bytes(
        &self,
        program: Program,
        size_of: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        get: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
        what: &str,
    ) -> Result<Vec<u8>, String> {
        let mut size = 0;
        // SAFETY: the program is alive, and `size` lives across the call.
        self.check(unsafe { size_of(program, &mut size) }, what)?;
        let mut bytes = vec![0u8; size];
        if size > 0 {
            // SAFETY: the buffer has the size that NVRTC requested.
            self.check(unsafe { get(program, bytes.as_mut_ptr().cast()) }, what)?;
        }
        Ok(bytes)
    }
}
