//! Coroutines of emulated threads, and the switch between any two of them: it saves the registers on the stack that it leaves, and resumes the other stack
//! where that was left. Knows stacks and registers of x86-64; does not know threads or blocks.
//!
//! The coroutines of a library return to the one that resumed them, so a thread that waits costs two switches. They also leave by
//! `ret`, which the processor predicts from the calls of the stack that was left, and so mispredicts. Here a thread switches directly
//! to the next, by a jump that nearly always has the same target.
#![expect(unsafe_code, reason = "swaps stacks")]

use std::arch::asm;
use std::io;

use super::stack::ThreadStack;

/// A coroutine that does not run, with the place of its registers.
pub(super) struct Fiber {
    /// The top of its stack when it was left.
    pub(super) top: usize,
    stack: ThreadStack,
}

impl Fiber {
    /// A coroutine on a new stack, the `number`th of its pool, that begins with `body`.
    pub(super) fn new(number: usize, body: unsafe extern "C" fn() -> !) -> io::Result<Fiber> {
        let stack = ThreadStack::map(number)?;
        // As if `body` had been called: the stack is one word off a multiple of sixteen, and that word is a null return address.
        let top = (stack.base() & !15) - 16;
        // SAFETY: the two highest words of a stack that was just mapped and that nothing else uses.
        unsafe {
            (top as *mut usize).write(body as *const () as usize);
            (top as *mut usize).add(1).write(0);
        }
        Ok(Fiber { top, stack })
    }

    /// First and last address of its stack, including the guard page.
    pub(super) fn range(&self) -> (usize, usize) {
        self.stack.range()
    }
}

/// Leaves the running stack, whose top is written to `leave`, and continues where the stack with the top `take` was left. Returns
/// when another switch resumes the stack that was left.
///
/// # Safety
/// `take` was written by this function, or belongs to a [`Fiber`] that has not begun, and has not been resumed since. Its stack is still mapped.
#[inline(always)]
pub(super) unsafe fn switch(leave: *mut usize, take: usize) {
    // SAFETY: as stated. Registers that the calling convention lets a function change are declared as clobbered; all others are pushed, or named as changed.
    unsafe {
        asm!(
            "push rbx",
            "push rbp",
            "lea rax, [rip + 2f]",
            "push rax",
            "mov [rdi], rsp",
            "mov rsp, rsi",
            "pop rax",
            "jmp rax",
            "2:",
            "pop rbp",
            "pop rbx",
            inout("rdi") leave => _,
            inout("rsi") take => _,
            out("r12") _,
            out("r13") _,
            out("r14") _,
            out("r15") _,
            clobber_abi("sysv64"),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, UnsafeCell};

    use super::*;

    thread_local! {
        /// Tops of the test's own stack and of the other.
        static TOPS: UnsafeCell<[usize; 2]> = const { UnsafeCell::new([0; 2]) };
        static SAID: Cell<u64> = const { Cell::new(0) };
    }

    fn top(which: usize) -> *mut usize {
        TOPS.with(|tops| tops.get().cast::<usize>().wrapping_add(which))
    }

    unsafe extern "C" fn counts() -> ! {
        let mut mine = 0u64;
        let third = f64::from(SAID.get() as u32) / 3.0;
        loop {
            mine += 1;
            SAID.set(mine * 100 + (third * 3.0) as u64);
            // SAFETY: the test's stack was left by the switch that came here.
            unsafe { switch(top(1), *top(0)) };
        }
    }

    #[test]
    fn a_stack_is_taken_up_where_it_was_left_with_its_values() {
        let fiber = Fiber::new(3, counts).unwrap();
        SAID.set(7);
        let kept: Vec<u64> = (0..20).collect();
        // SAFETY: a fiber that has not begun, and later the place where it was left; its stack lives to the end of the test.
        unsafe {
            *top(1) = fiber.top;
            for round in 1..=5 {
                switch(top(0), *top(1));
                assert_eq!(SAID.get(), round * 100 + 7);
            }
        }
        assert_eq!(kept.iter().sum::<u64>(), 190);
    }
}
