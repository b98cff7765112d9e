//! placeholder
#![expect(unsafe_code, reason = "x")]
pub(super) struct Watch;
impl Watch {
    pub(super) fn new(_a: &super::memory::Arena, _l: &super::job::Loaded) -> Watch {
        Watch
    }
    pub(super) fn filled(&self, _s: usize, _b: usize) {}
}
impl Watch {
    pub(super) fn next_phase(&self) {}
}
pub(super) struct BlockWatch;
impl BlockWatch {
    pub(super) fn barrier(&mut self) {}
    pub(super) fn warp(&mut self, _w: usize, _m: u32) {}
    pub(super) fn fence(&mut self) {}
}
pub(super) unsafe fn access(_c: *mut super::core::Core, _a: usize, _s: usize, _k: u32, _pc: usize) {}
pub(super) fn array_type(_d: *const std::ffi::c_void) -> String {
    String::new()
}
