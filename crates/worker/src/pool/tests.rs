use super::*;
use crate::runtime::{PYTHON_KERNEL, by_name};
use crate::testing::{FakeBackend, Guest};
use crate::{Discard, JobSpec, Work, cancellation, draw_job_id, draw_sandbox_id, sandbox_spec};
use cofferdam_backend::{ExitStatus, IDLE_SANDBOX_BYTES, Image};
use cofferdam_core::{JobResult, Limits};
use tokio::io::AsyncReadExt;

mod images;

fn spec() -> SandboxSpec {
    let work = Work::Command { argv: vec!["true".to_owned()] };
    sandbox_spec(draw_sandbox_id().unwrap(), &JobSpec::new(draw_job_id().unwrap(), work))
}

fn pool(settings: PoolSettings) -> (Arc<FakeBackend>, Pool) {
    let backend = Arc::new(FakeBackend::new());
    (Arc::clone(&backend), Pool::new(backend, settings))
}

/// Tends the pool until nothing is left to do.
async fn settle(pool: &Pool) {
    let _ = tokio::time::timeout(Duration::from_millis(50), pool.tend()).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_ready_is_handed_out_once_and_replaced() {
    let (backend, pool) = pool(PoolSettings::default());
    pool.keep_ready(&spec(), None, 2);
    settle(&pool).await;
    assert_eq!((backend.created(), pool.counts().waiting), (2, 2));
    let first = pool.take(spec()).await.unwrap();
    let second = pool.take(spec()).await.unwrap();
    assert_eq!((backend.created(), pool.counts().warm, pool.counts().waiting), (2, 2, 0));
    settle(&pool).await;
    assert_eq!(pool.counts().waiting, 2);
    first.destroy().await.unwrap();
    second.destroy().await.unwrap();
    assert_eq!(backend.standing(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_served_cold_without_an_error() {
    let (backend, pool) = pool(PoolSettings::default());
    pool.keep_ready(&spec(), None, 3);
    settle(&pool).await;
    let mut taken = Vec::new();
    for _ in 0..30 {
        taken.push(pool.take(spec()).await.unwrap());
    }
    let counts = pool.counts();
    assert_eq!((counts.warm, counts.cold, backend.created()), (3, 27, 30));
    settle(&pool).await;
    assert_eq!(pool.counts().waiting, PoolSettings::default().per_kind);
}

#[tokio::test(start_paused = true)]
async fn another_kind_is_never_served_from_the_wrong_shelf() {
    let (backend, pool) = pool(PoolSettings::default());
    pool.keep_ready(&spec(), None, 1);
    settle(&pool).await;
    for other in [
        SandboxSpec { image: Image::Folder("/elsewhere".into()), ..spec() },
        SandboxSpec { terminal: true, ..spec() },
        SandboxSpec { network: cofferdam_core::NetworkPolicy::Restricted, ..spec() },
        SandboxSpec { limits: Limits { disk: Limits::memory_disk(64 << 20), ..Limits::default() }, ..spec() },
    ] {
        drop(pool.take(other).await.unwrap());
    }
    assert_eq!((pool.counts().warm, pool.counts().cold), (0, 4));
    let smaller = Limits { memory_bytes: 2 << 30, pids: 5, ..Limits::default() };
    drop(pool.take(SandboxSpec { limits: smaller, ..spec() }).await.unwrap());
    assert_eq!((pool.counts().warm, backend.created()), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn the_bounds_hold() {
    let (_, by_count) = pool(PoolSettings { total: 3, ..PoolSettings::default() });
    by_count.keep_ready(&spec(), None, 100);
    settle(&by_count).await;
    assert_eq!(by_count.counts().waiting, 3);
    let (_, by_bytes) = pool(PoolSettings { bytes: 2 * IDLE_SANDBOX_BYTES, ..PoolSettings::default() });
    by_bytes.keep_ready(&spec(), None, 100);
    settle(&by_bytes).await;
    assert_eq!(by_bytes.counts().waiting, 2);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_asks_for_goes() {
    let (backend, pool) = pool(PoolSettings::default());
    pool.keep_ready(&spec(), None, 2);
    settle(&pool).await;
    let _ = tokio::time::timeout(PoolSettings::default().idle * 4, pool.tend()).await;
    assert_eq!((pool.counts().waiting, backend.standing()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn draining_leaves_nothing() {
    let (backend, pool) = pool(PoolSettings::default());
    pool.keep_ready(&spec(), None, 4);
    settle(&pool).await;
    pool.drain().await.unwrap();
    assert_eq!((pool.counts().waiting, backend.standing()), (0, 0));
}

/// A `python3` that says what it was asked to run: after a wait, or at once.
async fn python(mut guest: Guest) -> ExitStatus {
    if !guest.spec.argv[2].contains("_boot") {
        guest.print(format!("cold {}", guest.spec.argv[2])).await;
        return ExitStatus::Exited(0);
    }
    waiting(guest, "\0\0\0\0\0", "warm").await
}

/// Says that it waits, and what it was given then.
async fn waiting(mut guest: Guest, ready: &str, kind: &str) -> ExitStatus {
    guest.print(ready).await;
    let mut message = String::new();
    guest.stdin.read_to_string(&mut message).await.unwrap();
    let words: Vec<_> = message.split('\0').collect();
    let Some(code) = words.iter().find(|word| word.starts_with("code")) else { return ExitStatus::Exited(9) };
    guest.print(format!("{kind} {code}")).await;
    ExitStatus::Exited(0)
}

fn job(code: &str) -> JobSpec {
    let runtime = by_name("lang", "python").unwrap();
    JobSpec::new(draw_job_id().unwrap(), Work::Code { runtime, code: code.to_owned() })
}

async fn run(pool: &Pool, job: JobSpec) -> JobResult {
    let (_keep, cancel) = cancellation();
    pool.run(job, &mut Discard, cancel).await.unwrap()
}

/// A pool with `count` interpreters waiting, of a machine with this `python3`.
async fn pool_with<Ended>(python: fn(Guest) -> Ended, count: usize) -> (Arc<FakeBackend>, Pool)
where
    Ended: Future<Output = ExitStatus> + Send + 'static,
{
    let backend = Arc::new(FakeBackend::new().with_program("python3", python));
    let pool = Pool::new(Arc::<FakeBackend>::clone(&backend), PoolSettings::default());
    pool.keep_ready(&spec(), Some(by_name("lang", "python").unwrap()), count);
    settle(&pool).await;
    (backend, pool)
}

#[tokio::test(start_paused = true)]
async fn code_is_given_to_an_interpreter_that_waits_and_to_a_new_one_when_none_does() {
    let (backend, pool) = pool_with(python, 1).await;
    assert_eq!(pool.counts().waiting, 1);
    assert_eq!(run(&pool, job("code 1")).await.stdout.text(), "warm code 1");
    assert_eq!(run(&pool, job("code 2")).await.stdout.text(), "cold code 2");
    assert_eq!((pool.counts().warm, pool.counts().cold, backend.standing()), (1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_an_interpreter_cannot_be_given_afterwards_starts_one() {
    let (_, pool) = pool_with(python, 1).await;
    let seeded = JobSpec { env: vec![("PYTHONHASHSEED".to_owned(), "0".to_owned())], ..job("code") };
    let elsewhere =
        JobSpec { workdir: cofferdam_core::GuestPath::parse("w", "/tmp").unwrap(), ..job("code") };
    let small = Limits { memory_bytes: 12 << 20, disk: Limits::memory_disk(12 << 20), ..Limits::default() };
    for job in [seeded, elsewhere, JobSpec { limits: small, ..job("code") }] {
        assert_eq!(run(&pool, job).await.stdout.text(), "cold code");
    }
    assert_eq!((pool.counts().warm, pool.counts().waiting), (0, 1));
}

async fn read_message(guest: &mut Guest) -> String {
    let mut message = vec![0; guest.stdin.read_u32_le().await.unwrap() as usize];
    guest.stdin.read_exact(&mut message).await.unwrap();
    String::from_utf8(message).unwrap()
}

/// One that becomes the interpreter of a session: it is given a program first, and is ready again with that.
async fn python_of_sessions(mut guest: Guest) -> ExitStatus {
    guest.print("\0\0\0\0\0").await;
    let program = read_message(&mut guest).await;
    assert!(program.contains("_prepare") && program.contains("_boot"), "{program}");
    let (kernel, compiled) = (read_message(&mut guest).await, read_message(&mut guest).await);
    assert_eq!(kernel, cofferdam_kernels::PYTHON_WAITING.kernel);
    guest.print(if compiled.is_empty() { "\0\x04\0\0\0told" } else { "\0\0\0\0\0" }).await;
    let wanted = read_message(&mut guest).await;
    guest.print(format!("{compiled}: {}", wanted.replace('\0', " "))).await;
    ExitStatus::Exited(0)
}

#[tokio::test(start_paused = true)]
async fn the_interpreter_of_a_session_has_its_kernel_before_it_is_taken() {
    let backend = Arc::new(FakeBackend::new().with_program("python3", python_of_sessions));
    let pool = Pool::new(Arc::<FakeBackend>::clone(&backend), PoolSettings::default());
    pool.keep_ready(&spec(), Some(&PYTHON_KERNEL), 2);
    settle(&pool).await;
    assert_eq!(said_by_next(&pool).await, ": 0 2  port word K=v");
    // The next one is not made while the first step of this one is likely to run.
    assert_eq!(pool.counts().waiting, 1);
    let _ = tokio::time::timeout(Duration::from_millis(50), pool.tend()).await;
    assert_eq!(pool.counts().waiting, 1);
    let _ = tokio::time::timeout(Duration::from_millis(50), pool.tend()).await;
    assert_eq!(pool.counts().waiting, 2);
}

async fn said_by_next(pool: &Pool) -> String {
    let taken = pool.take_with_interpreter(spec(), &PYTHON_KERNEL, &[], None).await.unwrap();
    let env = [("K".to_owned(), "v".to_owned())];
    let process =
        taken.interpreter.unwrap().give("", &["port".to_owned(), "word".to_owned()], &env).await.unwrap();
    let mut said = String::new();
    process.take_stdout().unwrap().read_to_string(&mut said).await.unwrap();
    said
}

#[tokio::test(start_paused = true)]
async fn a_kernel_that_one_has_compiled_is_read_by_the_next() {
    let backend = Arc::new(FakeBackend::new().with_program("python3", python_of_sessions));
    let pool = Pool::new(Arc::<FakeBackend>::clone(&backend), PoolSettings::default());
    pool.keep_ready(&spec(), Some(&PYTHON_KERNEL), 1);
    settle(&pool).await;
    for compiled in ["", "told", "told"] {
        assert_eq!(said_by_next(&pool).await, format!("{compiled}: 0 2  port word K=v"));
        settle(&pool).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_kernel_that_was_told_compiled_comes_with_every_sandbox_of_its_kind() {
    let backend = Arc::new(FakeBackend::new().with_program("python3", python_of_sessions));
    let pool = Pool::new(Arc::<FakeBackend>::clone(&backend), PoolSettings::default());
    let told_with = async |spec: SandboxSpec, env: &[(String, String)]| {
        let taken = pool.take_with_interpreter(spec, &PYTHON_KERNEL, env, None).await.unwrap();
        (
            taken.interpreter.is_some(),
            taken.kernel.map(|kernel| String::from_utf8_lossy(&kernel).into_owned()),
        )
    };
    assert_eq!(told_with(spec(), &[]).await, (false, None), "nobody has told it yet");
    settle(&pool).await;
    let told = Some("told".to_owned());
    assert_eq!(told_with(spec(), &[]).await, (true, told.clone()));
    // Nothing can wait for this one, but what it will start has the same code.
    let env = [("PYTHONHASHSEED".to_owned(), "1".to_owned())];
    assert_eq!(told_with(spec(), &env).await, (false, told));
    let elsewhere = SandboxSpec { image: Image::Named("other".to_owned()), ..spec() };
    assert_eq!(told_with(elsewhere, &[]).await, (false, None), "another image has another interpreter");
}

#[tokio::test(start_paused = true)]
async fn an_interpreter_that_died_while_it_waited_is_nobodys_job() {
    async fn dying(mut guest: Guest) -> ExitStatus {
        if guest.spec.argv[2].contains("_boot") {
            guest.print("\0\0\0\0\0").await;
            return ExitStatus::Signaled(9);
        }
        python(guest).await
    }
    let (backend, pool) = pool_with(dying, 2).await;
    assert_eq!(run(&pool, job("code")).await.stdout.text(), "cold code");
    assert_eq!((pool.counts().warm, pool.counts().cold, backend.standing()), (0, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_interpreter_that_never_comes_up_holds_nobody_up() {
    async fn silent(guest: Guest) -> ExitStatus {
        if guest.spec.argv[2].contains("_boot") {
            std::future::pending::<()>().await;
        }
        python(guest).await
    }
    let (backend, pool) = pool_with(silent, 1).await;
    let _ = tokio::time::timeout(Duration::from_secs(10), pool.tend()).await;
    assert_eq!((pool.counts().waiting, backend.standing()), (0, 0));
    assert_eq!(run(&pool, job("code")).await.stdout.text(), "cold code");
}

#[tokio::test(start_paused = true)]
async fn interpreters_count_with_what_they_take() {
    let python = by_name("lang", "python").unwrap();
    let each = IDLE_SANDBOX_BYTES + python.ahead.unwrap().idle_bytes;
    let (_, pool) = pool(PoolSettings { bytes: 3 * each - 1, ..PoolSettings::default() });
    pool.keep_ready(&spec(), Some(python), 8);
    settle(&pool).await;
    assert_eq!(pool.counts().waiting, 2, "the image has no python, which nobody knew before");
    let backend = FakeBackend::new().with_program("python3", self::python);
    let pool = Pool::new(Arc::new(backend), PoolSettings { bytes: 3 * each - 1, ..PoolSettings::default() });
    pool.keep_ready(&spec(), Some(python), 8);
    settle(&pool).await;
    assert_eq!(pool.counts().waiting, 2);
}

/// How long an interpreter takes to start, or a program to run.
const SLOW: Duration = Duration::from_millis(20);

fn is_ahead(guest: &Guest) -> bool {
    guest.spec.argv[2].contains("_boot")
}

/// Tends the pool beside a request.
async fn tended<T>(pool: &Pool, request: impl Future<Output = T>) -> T {
    tokio::select! {
        done = request => done,
        never = pool.tend() => match never {},
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_has_one_that_is_nearly_ready() {
    async fn slow(guest: Guest) -> ExitStatus {
        tokio::time::sleep(SLOW).await;
        python(guest).await
    }
    let backend = Arc::new(FakeBackend::new().with_program("python3", slow));
    let pool = Pool::new(Arc::<FakeBackend>::clone(&backend), PoolSettings::default());
    pool.keep_ready(&spec(), Some(by_name("lang", "python").unwrap()), 1);
    let began = Instant::now();
    let texts = tended(&pool, async {
        tokio::time::sleep(SLOW / 2).await;
        let both = tokio::join!(run(&pool, job("code 1")), run(&pool, job("code 2")));
        [both.0.stdout.text(), both.1.stdout.text()]
    });
    // The second has none to wait for: one was in the making, and that is the first's.
    assert_eq!(Box::pin(texts).await, ["warm code 1", "cold code 2"]);
    assert_eq!(began.elapsed(), SLOW / 2 + SLOW);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_one_that_fails() {
    async fn failing(guest: Guest) -> ExitStatus {
        if is_ahead(&guest) {
            tokio::time::sleep(SLOW).await;
            return ExitStatus::Exited(1);
        }
        python(guest).await
    }
    let backend = Arc::new(FakeBackend::new().with_program("python3", failing));
    let pool = Pool::new(Arc::<FakeBackend>::clone(&backend), PoolSettings::default());
    pool.keep_ready(&spec(), Some(by_name("lang", "python").unwrap()), 1);
    let began = Instant::now();
    let result = tended(&pool, async {
        tokio::time::sleep(SLOW / 2).await;
        run(&pool, job("code")).await
    });
    assert_eq!(result.await.stdout.text(), "cold code");
    // The second one that was begun meanwhile failed as well.
    assert_eq!(began.elapsed(), SLOW + SLOW / 2);
}

#[tokio::test(start_paused = true)]
async fn the_next_one_is_not_made_at_the_cost_of_a_request() {
    async fn running(guest: Guest) -> ExitStatus {
        let is_ahead = is_ahead(&guest);
        let ended = python(guest).await;
        if is_ahead {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        ended
    }
    let (backend, pool) = pool_with(running, 3).await;
    let request = async {
        let before = async {
            tokio::time::sleep(Duration::from_millis(4)).await;
            backend.created()
        };
        tokio::join!(run(&pool, job("code")), before).1
    };
    assert_eq!(tended(&pool, request).await, 3);
    settle(&pool).await;
    assert_eq!((backend.created(), pool.counts().waiting), (4, 3));
    // A shelf that is empty is not held back: the next request would have to wait for it.
    let request = async {
        let run = || run(&pool, job("code"));
        let before = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            backend.created()
        };
        tokio::join!(run(), run(), run(), before).3
    };
    assert!(Box::pin(tended(&pool, request)).await > 4);
}

#[tokio::test(start_paused = true)]
async fn what_one_tells_of_its_code_is_what_the_next_starts_with() {
    async fn telling(mut guest: Guest) -> ExitStatus {
        if !guest.spec.argv[2].contains(".read(4)") {
            return waiting(guest, "\0\x04\0\0\0told", "plain").await;
        }
        let mut sent = [0; 4];
        guest.stdin.read_exact(&mut sent).await.unwrap();
        assert_eq!(&sent, b"told");
        python(guest).await
    }
    let (_, pool) = pool_with(telling, 1).await;
    assert_eq!(run(&pool, job("code 1")).await.stdout.text(), "plain code 1");
    settle(&pool).await;
    assert_eq!(run(&pool, job("code 2")).await.stdout.text(), "warm code 2");
}

#[tokio::test(start_paused = true)]
async fn one_that_tells_too_much_is_not_used() {
    async fn talkative(mut guest: Guest) -> ExitStatus {
        if is_ahead(&guest) {
            guest.print("\0\0\0\0\x01").await;
            std::future::pending::<()>().await;
        }
        python(guest).await
    }
    let (backend, pool) = pool_with(talkative, 1).await;
    assert_eq!((pool.counts().waiting, backend.standing()), (0, 0));
    assert_eq!(run(&pool, job("code")).await.stdout.text(), "cold code");
}
