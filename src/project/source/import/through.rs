//! What a kernel writes through a struct that it takes by value: `p.y[i] = v`, `float *y = p.y; y[i] = v`. Knows pointers that are members; does not follow calls.

use super::super::tokens::Token;
use super::kernel::Kernel;
use super::parameter::{Access, Parameter, access, at_use};

/// What a kernel writes through members of structs, without a parameter that is a pointer, and what to state for it; none if nothing of its structs is written.
pub(super) fn written_through_structs(kernel: &Kernel) -> Option<String> {
    let by_value = || kernel.parameters.iter().filter(|p| !p.pointer && p.dtype.is_none());
    let sure: Vec<String> = by_value().flat_map(|p| members(kernel, p)).collect();
    let quoted = |all: &[String]| all.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
    if !sure.is_empty() {
        return Some(format!(
            "the kernel writes through {}: state what they point to in `outputs` or `inouts`, and their names in the `struct` of `args`",
            quoted(&sure)
        ));
    }
    let is = |p: &&Parameter, wanted: fn(Access) -> bool| wanted(access(&p.name, &kernel.body));
    let named = |wanted: fn(Access) -> bool| by_value().filter(|p| is(p, wanted)).map(|p| p.name.clone()).collect();
    let writes: Vec<String> = named(is_write);
    let may: Vec<String> = named(|found| found == Access::Unknown);
    let (verb, all) = if writes.is_empty() { ("may write", may) } else { ("writes", writes) };
    (!all.is_empty()).then(|| {
        format!(
            "the kernel {verb} through pointers in its struct {}: state what they point to in `outputs` or `inouts`, and their names in the `struct` of `args`",
            quoted(&all)
        )
    })
}

fn is_write(found: Access) -> bool {
    matches!(found, Access::Written | Access::Both | Access::Atomic)
}

/// The members of a parameter through which the kernel writes, as it spells them: `p.y`.
fn members(kernel: &Kernel, parameter: &Parameter) -> Vec<String> {
    let known = kernel.structs.get(&parameter.name).and_then(Option::as_ref);
    let pointers = known.map_or(&[][..], |members| &members.pointers);
    let body = &kernel.body;
    let is = |at: usize, member: &str| {
        let text = body.get(at..at + 3);
        let own = at.checked_sub(1).is_none_or(|before| !body[before].is(".") && !body[before].is("->"));
        own && text.is_some_and(|w| w[0].is(&parameter.name) && w[1].is(".") && w[2].is(member))
    };
    let written = |member: &&String| {
        let uses: Vec<usize> = (0..body.len()).filter(|at| is(*at, member)).collect();
        let direct = uses.iter().any(|at| at_use(body, *at).is_some_and(is_write));
        direct || uses.iter().filter_map(|at| copied_to(body, *at)).any(|name| is_write(access(name, body)))
    };
    pointers.iter().filter(written).map(|member| format!("{}.{member}", parameter.name)).collect()
}

/// The variable whose initial value begins at a position: `y` of `float *y = p.y`.
fn copied_to(body: &[Token], at: usize) -> Option<&str> {
    let name = at.checked_sub(2).map(|name| &body[name])?;
    let declared = at.checked_sub(3).map(|before| &body[before])?;
    let pointer = ["*", "auto", "__restrict__", "const"].iter().any(|word| declared.is(word));
    (body[at - 1].is("=") && name.is_word() && pointer).then_some(name.text.as_str())
}
