//! References and kernels in PyTorch, kernels in Triton, and sets of problems in PyTorch, as users build them. The first tier shows what happens where PyTorch or
//! Triton is missing; the second tier installs both.

#[path = "../installed/folders.rs"]
mod folders;
mod problem_sets;
#[path = "../installed/program.rs"]
mod program;
#[path = "../installed/python.rs"]
mod python;
mod torch;
mod torch_candidates;
mod triton;
