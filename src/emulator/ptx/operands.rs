//! Which C++ the operands of instructions are: registers by their scopes, operands of the statement, constants, special registers, addresses. Knows widths and
//! what may be written; not what instructions do.

use std::collections::HashMap;

use super::statement::Argument;
use super::template::Operand;

/// Why an instruction is not translated: it is not emulated, or its operands do not fit. The statement reports its name either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused;

/// A type of PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Type(&'static str, u32);

/// The types that instructions have and registers are declared with, and their bits; a predicate has one.
const TYPES: [Type; 26] = [
    Type("pred", 1),
    Type("b8", 8),
    Type("u8", 8),
    Type("s8", 8),
    Type("e4m3", 8),
    Type("e5m2", 8),
    Type("b16", 16),
    Type("u16", 16),
    Type("s16", 16),
    Type("f16", 16),
    Type("bf16", 16),
    Type("e4m3x2", 16),
    Type("e5m2x2", 16),
    Type("b32", 32),
    Type("u32", 32),
    Type("s32", 32),
    Type("f32", 32),
    Type("f16x2", 32),
    Type("bf16x2", 32),
    Type("tf32", 32),
    Type("u16x2", 32),
    Type("s16x2", 32),
    Type("b64", 64),
    Type("u64", 64),
    Type("s64", 64),
    Type("f64", 64),
];

impl Type {
    /// The type of that name, without its dot.
    pub(super) fn named(name: &str) -> Option<Type> {
        TYPES.iter().copied().find(|t| t.0 == name)
    }

    /// A type that is known to exist.
    pub(super) fn of(name: &str) -> Type {
        Type::named(name).expect("BUG: a type of the table")
    }

    /// The unsigned integer of so many bits.
    pub(super) fn unsigned(bits: u32) -> Type {
        Type::of(match bits {
            8 => "u8",
            16 => "u16",
            32 => "u32",
            _ => "u64",
        })
    }

    pub(super) fn name(self) -> &'static str {
        self.0
    }

    pub(super) fn bits(self) -> u32 {
        self.1
    }

    pub(super) fn is(self, names: &[&str]) -> bool {
        names.contains(&self.0)
    }

    pub(super) fn is_integer(self) -> bool {
        self.is(&["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
    }

    /// An integer, or bits without a meaning.
    pub(super) fn is_bits(self) -> bool {
        self.is_integer() || self.is(&["b8", "b16", "b32", "b64"])
    }

    /// One number, no pair.
    pub(super) fn is_float(self) -> bool {
        self.is(&["f16", "bf16", "f32", "f64"])
    }

    pub(super) fn is_narrow(self) -> bool {
        self.is(&["f16", "bf16", "f16x2", "bf16x2"])
    }

    pub(super) fn is_pair(self) -> bool {
        self.is(&["f16x2", "bf16x2"])
    }

    /// The C++ type of a half of a pair of integers.
    pub(super) fn cpp_part(self) -> String {
        if self.is(&["s16x2"]) { "kf_t_s16".into() } else { "kf_t_u16".into() }
    }

    /// Its name in `kf_ptx_values.h`.
    pub(super) fn cpp(self) -> String {
        // Pairs of 8 bits and of integers are their bits.
        match self.0 {
            "e4m3x2" | "e5m2x2" => "kf_t_b16".into(),
            "u16x2" | "s16x2" => "kf_t_b32".into(),
            name => format!("kf_t_{name}"),
        }
    }
}

/// What holds a value: its C++ name, its bits (1: a predicate), and whether an instruction may write it.
#[derive(Debug, Clone)]
struct Register {
    cpp: String,
    bits: u32,
    writable: bool,
}

/// A space of memory that an address is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    /// Any, by a generic address; global addresses are generic ones.
    Generic,
    /// Shared.
    Shared,
}

/// The operands of a statement and the registers of its template.
pub(super) struct Operands {
    arguments: Vec<Register>,
    constants: Vec<bool>,
    scopes: Vec<HashMap<String, Register>>,
    /// The labels of each open scope.
    labels: Vec<Vec<String>>,
}

/// The declarations before the instructions, and the assignments after them.
pub(super) struct Around {
    pub(super) before: String,
    pub(super) after: String,
}

impl Operands {
    /// The operands of a statement.
    pub(super) fn of(arguments: &[Argument]) -> Result<(Operands, Around), Refused> {
        let mut operands =
            Operands { arguments: vec![], constants: vec![], scopes: vec![HashMap::new()], labels: vec![] };
        let (mut outputs, mut inputs, mut after) = (String::new(), String::new(), String::new());
        for (index, Argument { constraint, expression }) in arguments.iter().enumerate() {
            let written = constraint.starts_with(['=', '+']);
            let read = !constraint.starts_with('=');
            let kind = constraint.trim_start_matches(['=', '+', '&', '%']);
            let (bits, float) = match kind {
                "h" => (16, None),
                "r" => (32, None),
                "l" => (64, None),
                "f" => (32, Some("float")),
                "d" => (64, Some("double")),
                "n" | "i" if !written => (64, None),
                _ => return Err(Refused),
            };
            let constant = matches!(kind, "n" | "i");
            let (register, held) = (Type::unsigned(bits).cpp(), format!("kf_{index}"));
            let value = |of: &str| match float {
                _ if constant => format!("static_cast<long long>({of})"),
                Some(float) => format!("kf_ptx_in_float<{register}, {float}>({of})"),
                None => format!("kf_ptx_in<{register}>({of})"),
            };
            if constant {
                inputs += &format!("const long long {held} = {};", value(expression));
            } else if written {
                outputs += &format!("auto &kf_at_{index} = ({expression});{register} {held}");
                outputs += &if read { format!(" = {};", value(&format!("kf_at_{index}"))) } else { ";".into() };
                after += &format!("kf_ptx_out(kf_at_{index}, {held});");
            } else {
                inputs += &format!("{register} {held} = {};", value(&format!("({expression})")));
            }
            operands.arguments.push(Register { cpp: held, bits, writable: written });
            operands.constants.push(constant);
        }
        Ok((operands, Around { before: outputs + &inputs, after }))
    }

    pub(super) fn open(&mut self) {
        self.scopes.push(HashMap::new());
    }

    pub(super) fn close(&mut self) {
        self.scopes.pop();
        self.labels.pop();
    }

    /// Makes labels known in the scope that was opened last, or in that of the statement, and returns the C++ that declares them, which comes first there.
    pub(super) fn declare_labels(&mut self, names: Vec<String>) -> Result<String, Refused> {
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Refused);
        }
        let declared = names.iter().map(|name| format!("__label__ {};", label(name))).collect();
        self.labels.push(names);
        Ok(declared)
    }

    /// The C++ label that an operand names.
    pub(super) fn target(&self, operand: &Operand) -> Result<String, Refused> {
        match operand {
            Operand::Name(name) if self.labels.iter().flatten().any(|known| known == name) => Ok(label(name)),
            _ => Err(Refused),
        }
    }

    /// Declares registers, and returns the C++ that does so.
    pub(super) fn declare(&mut self, of: &str, names: &[String]) -> Result<String, Refused> {
        let of = Type::named(of).filter(|of| !of.is(&["tf32", "e4m3", "e5m2"])).ok_or(Refused)?;
        let mut out = String::new();
        for name in names {
            let cpp = format!("kf_r_{}", name.replace('%', "_P").replace('$', "_S"));
            let held = if of.bits() == 1 { "bool".into() } else { Type::unsigned(of.bits()).cpp() };
            out += &format!("{held} {cpp};");
            let scope = self.scopes.last_mut().ok_or(Refused)?;
            if scope.insert(name.clone(), Register { cpp, bits: of.bits(), writable: true }).is_some() {
                return Err(Refused);
            }
        }
        Ok(out)
    }

    fn register(&self, operand: &Operand) -> Option<&Register> {
        match operand {
            Operand::Argument(index) if !*self.constants.get(*index)? => self.arguments.get(*index),
            Operand::Name(name) => self.scopes.iter().rev().find_map(|scope| scope.get(name)),
            _ => None,
        }
    }

    /// The value of an operand as such a type; `wide` if a wider register may hold it.
    fn read(&self, operand: &Operand, of: Type, wide: bool) -> Result<String, Refused> {
        let cpp = of.cpp();
        if let Some(register) = self.register(operand) {
            return match (register.bits, of.bits()) {
                (1, 1) => Ok(register.cpp.clone()),
                (1, _) | (_, 1) => Err(Refused),
                (held, asked) if held == asked || wide && held > asked => {
                    Ok(format!("kf_ptx_get<{cpp}>({})", register.cpp))
                }
                _ => Err(Refused),
            };
        }
        match operand {
            Operand::Argument(index) if self.constants.get(*index) == Some(&true) && of.bits() > 1 => {
                Ok(format!("kf_ptx_constant<{cpp}>({})", self.arguments[*index].cpp))
            }
            Operand::Integer(value) if of.is_bits() => Ok(format!("static_cast<{cpp}>({value}ull)")),
            Operand::Integer(value) if of.bits() == 1 && *value <= 1 => Ok(["false", "true"][*value as usize].into()),
            Operand::Single(bits) if of.is(&["f32"]) => Ok(format!("kf_bits<float>({bits}u)")),
            Operand::Single(bits) if of.is(&["b32"]) => Ok(format!("static_cast<{cpp}>({bits}u)")),
            Operand::Double(bits) if of.is(&["f64"]) => Ok(format!("kf_bits<double>({bits}ull)")),
            Operand::Double(bits) if of.is(&["b64"]) => Ok(format!("static_cast<{cpp}>({bits}ull)")),
            Operand::Double(bits) if of.is(&["f32"]) => {
                Ok(format!("kf_bits<float>({}u)", (f64::from_bits(*bits) as f32).to_bits()))
            }
            Operand::Name(name) => {
                let (value, bits) = special(name).ok_or(Refused)?;
                let fits =
                    of.is_bits() && (bits == of.bits() || wide && bits > of.bits() || bits > 32 && of.bits() == 32);
                if fits { Ok(format!("static_cast<{cpp}>({value})")) } else { Err(Refused) }
            }
            _ => Err(Refused),
        }
    }

    /// The value of an operand.
    pub(super) fn value(&self, operand: &Operand, of: Type) -> Result<String, Refused> {
        self.read(operand, of, false)
    }

    /// The value of an operand: the low bits of its register, which may be wider.
    pub(super) fn low(&self, operand: &Operand, of: Type) -> Result<String, Refused> {
        self.read(operand, of, true)
    }

    /// A predicate, which may be negated.
    pub(super) fn predicate(&self, operand: &Operand) -> Result<String, Refused> {
        match operand {
            Operand::Not(of) => Ok(format!("!{}", self.predicate(of)?)),
            other => self.value(other, Type::of("pred")),
        }
    }

    /// The special register among these operands that is not emulated, if there is one.
    pub(super) fn unknown_special<'a>(&self, given: &'a [Operand]) -> Option<&'a str> {
        given.iter().find_map(|operand| match operand {
            Operand::Name(name) => {
                (name.starts_with('%') && self.register(operand).is_none() && special(name).is_none())
                    .then_some(&**name)
            }
            _ => None,
        })
    }

    /// The register that a guard names.
    pub(super) fn guard(&self, name: &str) -> Result<String, Refused> {
        self.value(&Operand::Name(name.to_owned()), Type::of("pred"))
    }

    /// Writes a value of such a type to an operand, which may be a wider register if `wide`.
    fn write(&self, operand: &Operand, of: Type, wide: bool, value: &str) -> Result<String, Refused> {
        if *operand == Operand::Sink {
            return Ok(format!("static_cast<void>({value});"));
        }
        let register = self.register(operand).filter(|r| r.writable).ok_or(Refused)?;
        match (register.bits, of.bits()) {
            (1, 1) => Ok(format!("{} = {value};", register.cpp)),
            (1, _) | (_, 1) => Err(Refused),
            (held, given) if held == given || wide && held > given => {
                Ok(format!("kf_ptx_put({}, {value});", register.cpp))
            }
            _ => Err(Refused),
        }
    }

    /// Writes a value to an operand of its width.
    pub(super) fn put(&self, operand: &Operand, of: Type, value: &str) -> Result<String, Refused> {
        self.write(operand, of, false, value)
    }

    /// Writes a value to an operand that may be wider.
    pub(super) fn extend(&self, operand: &Operand, of: Type, value: &str) -> Result<String, Refused> {
        self.write(operand, of, true, value)
    }

    /// The parts of an operand: of a vector, or itself.
    pub(super) fn parts(operand: &Operand) -> &[Operand] {
        match operand {
            Operand::Vector(parts) => parts,
            other => std::slice::from_ref(other),
        }
    }

    /// The pointer that an address operand is.
    pub(super) fn address(&self, operand: &Operand, space: Space) -> Result<String, Refused> {
        let Operand::Memory(terms) = operand else { return Err(Refused) };
        let mut sum = Vec::new();
        for (at, term) in terms.iter().enumerate() {
            let term = match (self.register(term), term) {
                // 32 bits hold shared addresses only.
                (Some(r), _) if r.bits == 64 || r.bits == 32 && space == Space::Shared => {
                    format!("static_cast<kf_t_u64>({})", r.cpp)
                }
                (None, Operand::Integer(_)) if at > 0 => self.value(term, Type::of("u64"))?,
                (None, Operand::Argument(_)) if at > 0 => self.value(term, Type::of("u64"))?,
                _ => return Err(Refused),
            };
            sum.push(term);
        }
        let pointer = if space == Space::Shared { "kf_ptx_shared" } else { "kf_ptx_generic" };
        Ok(format!("{pointer}({})", sum.join(" + ")))
    }
}

/// A label as C++ spells it.
pub(super) fn label(name: &str) -> String {
    format!("kf_l_{}", name.replace('$', "_S"))
}

/// The value and bits of a special register.
fn special(name: &str) -> Option<(String, u32)> {
    let (name, axis) = match name.strip_suffix(".x").map(|n| (n, 0)).or(name.strip_suffix(".y").map(|n| (n, 1))) {
        Some((name, axis)) => (name, Some(axis)),
        None => name.strip_suffix(".z").map_or((name, None), |n| (n, Some(2))),
    };
    let plain = match (name, axis) {
        ("%tid" | "%ntid" | "%ctaid" | "%nctaid", Some(axis)) => {
            return Some((format!("kf_ptx_{}({axis})", &name[1..]), 32));
        }
        (_, Some(_)) => return None,
        ("%clock64" | "%clock", None) => return Some(("kf_ptx_clock()".into(), 64)),
        ("%clock_hi", None) => return Some(("(kf_ptx_clock() >> 32)".into(), 32)),
        ("%globaltimer" | "%globaltimer_lo", None) => return Some(("kf_ptx_globaltimer()".into(), 64)),
        ("%globaltimer_hi", None) => return Some(("(kf_ptx_globaltimer() >> 32)".into(), 32)),
        ("%gridid", None) => return Some(("0".into(), 64)),
        ("%dynamic_smem_size", None) => "kf_ptx_dynamic_shared()",
        ("WARP_SZ", None) => "32",
        ("%laneid", None) => "kf_ptx_laneid()",
        ("%warpid", None) => "kf_ptx_warpid()",
        ("%nwarpid", None) => "kf_ptx_nwarpid()",
        ("%smid", None) => "kf_ptx_smid()",
        ("%nsmid", None) => "kf_ptx_nsmid()",
        ("%lanemask_eq", None) => "kf_ptx_lanemask_eq()",
        ("%lanemask_lt", None) => "kf_ptx_lanemask_lt()",
        ("%lanemask_le", None) => "kf_ptx_lanemask_le()",
        ("%lanemask_gt", None) => "kf_ptx_lanemask_gt()",
        ("%lanemask_ge", None) => "kf_ptx_lanemask_ge()",
        _ => return None,
    };
    Some((plain.to_owned(), 32))
}
