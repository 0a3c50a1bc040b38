package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// insideFlag marks the process that runs inside the isolated network.
const insideFlag = "-inside"

// runInside runs one test against a new emulator and returns the exit status.
func runInside(ctx context.Context, args []string) int {
	if len(args) != 4 {
		fmt.Println("want a suite, an emulator, the tests, and the name of one")
		return 2
	}
	for _, s := range suites {
		if s.id != args[0] {
			continue
		}
		if err := s.runWithEmulator(ctx, args[1], args[2], args[3]); err != nil {
			fmt.Println(err)
			return 1
		}
		return 0
	}
	return 2
}

func (s *suite) runWithEmulator(ctx context.Context, emulator, binary, name string) (err error) {
	if err := enableLoopback(); err != nil {
		return fmt.Errorf("start the network: %w", err)
	}
	dir, err := os.MkdirTemp("", "clientsuite-test-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	trust, entities, hosts := filepath.Join(dir, "trust.crt"), filepath.Join(dir, "entities.json"), filepath.Join(dir, "hosts")
	if err := os.WriteFile(hosts, []byte(localhost+" localhost\n"), 0o600); err != nil {
		return err
	}
	if err := writeHosts(hosts); err != nil {
		return fmt.Errorf("give localhost an address: %w", err)
	}
	if err := os.WriteFile(entities, []byte(liveEntities), 0o600); err != nil {
		return err
	}
	args := append([]string{"emulator", "servicebus", "--data", filepath.Join(dir, "data"), "--entities", entities}, s.emulator...)
	if s.module == azservicebus {
		args = append(args, "--cert", trust)
	}
	server := exec.CommandContext(ctx, emulator, args...) //nolint:gosec // built by this program
	said, err := server.StderrPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait() // the error only says that the server was killed
	}()
	if ready, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.Contains(ready, `"msg":"ready"`) {
		return fmt.Errorf("the emulator did not start: %s (%w)", ready, err)
	}
	test := exec.CommandContext(ctx, binary, "-test.v", "-test.count=1", "-test.timeout=10m", "-test.run", "^"+name+"$") //nolint:gosec // as above
	test.Dir = filepath.Dir(binary)
	test.Env = append(os.Environ(), s.environ(trust)...)
	test.Stdout, test.Stderr = os.Stdout, os.Stdout
	return test.Run()
}
