package service

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// A Process is a hub that runs as a separate process, which can be killed.
type Process struct {
	cmd    *exec.Cmd
	url    string
	ready  chan struct{}
	exited sync.WaitGroup
	output strings.Builder // output of the hub; read it only after the hub has exited
}

// FreeAddress returns a loopback address that nothing listens on.
func FreeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// StartProcess runs a program messagehub as a hub that listens on an address and stores its data in
// a folder. It returns when the hub is ready. The hub calls receivers on loopback ports.
func StartProcess(ctx context.Context, program, address, folder string) (*Process, error) {
	p := &Process{url: "http://" + address, ready: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, program, "serve", "--listen", address, "--admin-listen", address, "--data", folder, "--log-level", "warn", "--log-format", "json") //nolint:gosec // the program is this one, or was built for the bench
	p.cmd.Env = append(os.Environ(), "MESSAGEHUB_ADMIN_TOKEN="+AdminToken, "MESSAGEHUB_PUSH_ALLOW=127.0.0.0/8", "MESSAGEHUB_PUSH_INSECURE_HTTP=true")
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan struct{})
	p.exited.Go(func() {
		defer close(exited)
		isReady := false
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if !isReady && strings.Contains(lines.Text(), `"msg":"ready"`) {
				isReady = true
				close(p.ready)
			}
			p.output.WriteString(lines.Text() + "\n")
		}
		_ = p.cmd.Wait() // Wait returns an error, because the process was killed
	})
	select {
	case <-p.ready:
		return p, nil
	case <-exited:
		return nil, fmt.Errorf("the hub has ended before it was ready: %s", p.output.String())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), p.Kill())
	}
}

// URL returns the URL of the hub for clients.
func (p *Process) URL() string { return p.url }

// Kill kills the hub, and returns when it has exited.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	p.exited.Wait()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
