// Takes the place of tests/BlobTestServerFactory.ts of Azurite, whose blob tests then run on
// the emulator of Blob Storage. MESSAGEHUB is the program to test.
import { ChildProcess, spawn } from "child_process";
import { once } from "events";

class EmulatorProcess {
  public readonly config = { host: "127.0.0.1", port: 11000 };
  private child?: ChildProcess;

  constructor(private readonly flags: string[]) {}

  // start returns when the emulator accepts connections.
  public async start(): Promise<void> {
    const { host, port } = this.config;
    this.child = spawn(
      process.env.MESSAGEHUB ?? "messagehub",
      ["emulator", "blob", "--in-memory", "--listen", `${host}:${port}`, ...this.flags],
      { stdio: ["ignore", "pipe", "inherit"] }
    );
    const ended = once(this.child, "exit").then(() => {
      throw new Error("the emulator did not start");
    });
    await Promise.race([once(this.child.stdout!, "data"), ended]);
    ended.catch(() => undefined); // it is stopped by close
  }

  public async close(): Promise<void> {
    if (this.child !== undefined && this.child.exitCode === null) {
      const ended = once(this.child, "exit");
      this.child.kill();
      await ended;
    }
  }

  public async clean(): Promise<void> { /* the account is in memory */ }
}

export default class BlobTestServerFactory {
  // The emulator has no settings for loose checks and for versions of the API: it accepts every
  // version, and refuses what it does not know.
  public createServer(_loose = false, _skipApiVersionCheck = false, https = false, oauth?: string): EmulatorProcess {
    return new EmulatorProcess([...(https ? ["--tls"] : []), ...(oauth === undefined ? [] : ["--trust-tokens"])]);
  }
}
