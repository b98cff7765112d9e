//! Loads, stores, asynchronous copies, and hints to the caches.

use super::{Code, Op, exactly};
use crate::ptx::operands::{Operands, Refused, Space, Type};
use crate::ptx::template::Operand;

/// The operations of this group.
pub(super) const NAMES: &[&str] = &["ld", "ldu", "st", "cp", "prefetch", "prefetchu", "discard", "applypriority"];

/// Where caches keep a line, which is not emulated.
fn is_hint(modifier: &str) -> bool {
    modifier.starts_with("L1::") || modifier.starts_with("L2::")
}

pub(super) fn translated(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    match op.name {
        "ld" | "ldu" | "st" => access(on, op, given),
        "cp" => copy(on, op, given),
        // Nothing that a kernel could see.
        "prefetch" | "prefetchu" | "discard" | "applypriority" => {
            op.drop(|m| matches!(m, "global" | "L1" | "L2") || is_hint(m));
            op.end()?;
            on.address(given.first().ok_or(Refused)?, Space::Generic)?;
            Ok(";".into())
        }
        _ => Err(Refused),
    }
}

/// The space of an access: none named is generic.
pub(super) fn space(op: &mut Op<'_>) -> Space {
    match op.one(&["global", "shared", "shared::cta"]) {
        Some("shared" | "shared::cta") => Space::Shared,
        _ => Space::Generic,
    }
}

fn access(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let loads = op.name != "st";
    let space = space(op);
    let order = op.one(&["weak", "relaxed", if loads { "acquire" } else { "release" }]);
    let scope = op.one(&["cta", "cluster", "gpu", "sys"]);
    let volatile = op.flag("volatile");
    if matches!(order, Some("relaxed" | "acquire" | "release")) != scope.is_some() || volatile && order.is_some() {
        return Err(Refused);
    }
    op.one(if loads { &["ca", "cg", "cs", "lu", "cv"] } else { &["wb", "cg", "cs", "wt"] });
    let read_only = loads && op.flag("nc");
    let policy = op.flag("L2::cache_hint");
    op.drop(is_hint);
    let many = match op.one(&["v2", "v4"]) {
        Some("v2") => 2,
        Some(_) => 4,
        None => 1,
    };
    let of = op.next()?;
    op.end()?;
    let accessed = of.is_bits() || of.is(&["f32", "f64"]);
    // The policy of a hint comes last.
    let (Some(first), Some(second), 2 | 3) = (given.first(), given.get(1), given.len()) else { return Err(Refused) };
    if !accessed || of.bits() * many > 128 || (given.len() == 3) != policy {
        return Err(Refused);
    }
    let (values, address) = if loads { (first, second) } else { (second, first) };
    let pointer = on.address(address, space)?;
    // One operand may stand in braces, too.
    let values = Operands::parts(values);
    if values.len() != many as usize {
        return Err(Refused);
    }
    let cpp = of.cpp();
    if scope.is_some() {
        if many > 1 {
            return Err(Refused);
        }
        return if loads {
            let acquire = super::spelled(order == Some("acquire"));
            on.extend(&values[0], of, &format!("kf_ptx_load_strong<{cpp}>({pointer}, {acquire})"))
        } else {
            let release = super::spelled(order == Some("release"));
            Ok(format!("kf_ptx_store_strong<{cpp}>({pointer}, {}, {release});", on.low(&values[0], of)?))
        };
    }
    let kind = if volatile {
        "_volatile"
    } else if read_only {
        "_nc"
    } else {
        ""
    };
    if many == 1 && kind.is_empty() {
        return if loads {
            on.extend(&values[0], of, &format!("kf_ptx_load_one<{cpp}>({pointer})"))
        } else {
            Ok(format!("kf_ptx_store_one<{cpp}>({pointer}, {});", on.low(&values[0], of)?))
        };
    }
    if loads {
        let mut out =
            format!("const kf_ptx_vector<{cpp}, {many}> kf_loaded = kf_ptx_load{kind}<{cpp}, {many}>({pointer});");
        for (at, d) in values.iter().enumerate() {
            out += &on.extend(d, of, &format!("kf_loaded.v[{at}]"))?;
        }
        Ok(out)
    } else {
        let stored = values.iter().map(|v| on.low(v, of)).collect::<Result<Vec<_>, _>>()?.join(", ");
        Ok(format!("kf_ptx_store{kind}<{cpp}, {many}>({pointer}, kf_ptx_vector<{cpp}, {many}>{{{{{stored}}}}});"))
    }
}

/// `cp.async` with its groups: a copy is done at once, so there is nothing to wait for.
fn copy(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    if !op.flag("async") {
        return Err(Refused);
    }
    if let Some(group) = op.one(&["commit_group", "wait_group", "wait_all"]) {
        op.end()?;
        return match (group, given) {
            ("commit_group" | "wait_all", []) => Ok(";".into()),
            ("wait_group", [left]) => Ok(format!("static_cast<void>({});", on.value(left, Type::of("u64"))?)),
            _ => Err(Refused),
        };
    }
    let through = op.one(&["ca", "cg"]).ok_or(Refused)?;
    let into = op.one(&["shared", "shared::cta"]).is_some();
    let policy = op.flag("L2::cache_hint");
    op.drop(is_hint);
    let from = op.flag("global");
    op.end()?;
    let (given, policies) = given.split_at(given.len().saturating_sub(usize::from(policy)));
    let [to, source, size, rest @ ..] = given else { return Err(Refused) };
    if !into || !from || rest.len() > 1 || policies.len() != usize::from(policy) {
        return Err(Refused);
    }
    let count = Type::of("u64");
    let size = match size {
        Operand::Integer(16) => "16".into(),
        Operand::Integer(n @ (4 | 8)) if through == "ca" => n.to_string(),
        Operand::Argument(_) => on.value(size, count)?,
        _ => return Err(Refused),
    };
    let (to, source) = (on.address(to, Space::Shared)?, on.address(source, Space::Generic)?);
    let given = match rest {
        [] => size.clone(),
        // How many bytes are read, the rest being zeros; or a predicate that leaves out the reading.
        [read] => match on.value(read, Type::of("u32")).or_else(|_| on.value(read, count)) {
            Ok(read) => format!("static_cast<kf_t_u64>({read})"),
            Err(_) => format!("({} ? 0 : {size})", on.predicate(read)?),
        },
        _ => return Err(Refused),
    };
    Ok(format!("kf_ptx_copy({to}, {source}, {size}, {given});"))
}

/// What `exactly` is to other groups: the address and the values of an atomic operation.
pub(super) fn addressed<'a, const N: usize>(
    on: &Operands,
    given: &'a [Operand],
    space: Space,
) -> Result<(String, &'a [Operand; N]), Refused> {
    let (address, values) = given.split_first().ok_or(Refused)?;
    Ok((on.address(address, space)?, exactly(values)?))
}
