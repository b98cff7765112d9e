//! speed
#[path = "emulator/harness.rs"]
mod harness;
use harness::*;
#[test]
fn speed() {
    let text = std::fs::read_to_string("/tmp/speed.cu").unwrap();
    for check in [false, true] {
    let t = std::time::Instant::now();
    let built = build(&text, &["axpy","softmax","sync20","matmul"], check);
    eprintln!("build {:?}", t.elapsed());
    for threads in [1,2] {
        let how = How { threads, ..How::default() };
        let n: usize = if check { 1<<18 } else { 1<<24 };
        let z = floats("x", vec![1.0; n]); let y = floats("y", vec![0.0; n]).writable();
        let one = |l: Vec<kforge::model::bound::KernelLaunch>, data: &[Data]| { 
            let t0=std::time::Instant::now(); let r=run_with(&built, l.iter().take(0).cloned().collect(), data, &how); r.clean(); let base=t0.elapsed();
            let t1=std::time::Instant::now(); let r=run_with(&built, l, data, &how); r.clean(); (t1.elapsed().saturating_sub(base)).as_secs_f64() };
        let k = launch("axpy", (n/256) as u32, 256, vec![ptr("x"),ptr("y"),float(2.0),int(n as i64)]);
        let a = one(vec![k.clone()], &[z.clone(), y.clone()]);
        let b = one(vec![k.clone(), k.clone(),k.clone(),k.clone(), k], &[z.clone(), y.clone()]);
        eprintln!("{check} {threads} axpy {:.1} M threads/s first, {:.1} warm", n as f64/a/1e6, 4.0*n as f64/(b-a)/1e6);
        let rows = n/4096;
        let a = one(vec![launch("softmax", rows as u32, 256, vec![ptr("x"),ptr("y"),int(4096)])], &[z.clone(), y.clone()]);
        eprintln!("{check} {threads} softmax {:.1} M switches/s {a:.3} s", rows as f64*256.0*20.0/a/1e6);
        let blocks = if check {256} else {4096};
        let a = one(vec![launch("sync20", blocks, 256, vec![ptr("y")])], &[y.clone()]);
        eprintln!("{check} {threads} sync20 {:.1} M switches/s", f64::from(blocks)*256.0*20.0/a/1e6);
        let m = if check {64} else {512};
        let a = one(vec![launch("matmul", (m/16)*(m/16), 256, vec![ptr("x"),ptr("x"),ptr("y"),int(m as i64)])], &[z.clone(), y.clone()]);
        eprintln!("{check} {threads} matmul {:.3} GFLOP/s", 2.0*(m as f64).powi(3)/a/1e9);
    }}
}
