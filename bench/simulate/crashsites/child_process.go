//go:build unix

package crashsites

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// A childProcess is a program that was started, and what it says.
type childProcess struct {
	cmd    *exec.Cmd
	ready  chan struct{} // closed when it has said its first words
	first  string        // of them, the rest of the line
	exited chan struct{} // closed when it is gone and all it said has been read
	err    error         // of its exit
	last   string        // its last words, if it has died of its fuse

	stderr bytes.Buffer // to be read once it is gone
}

// startProcess starts a program whose first words on standard output begin with greeting.
func startProcess(cmd *exec.Cmd, greeting string) (*childProcess, error) {
	p := &childProcess{cmd: cmd, ready: make(chan struct{}), exited: make(chan struct{})}
	cmd.Stderr = &p.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.readOutput(out, greeting)
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

func (p *childProcess) readOutput(out io.Reader, greeting string) {
	lines := bufio.NewScanner(out)
	said := false
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, greeting); ok && !said {
			said, p.first = true, strings.TrimSpace(rest)
			close(p.ready)
		}
		if rest, ok := strings.CutPrefix(line, lastWords+" "); ok {
			p.last = rest
		}
	}
}

// awaitReady returns when the process is ready.
func (p *childProcess) awaitReady(ctx context.Context) error {
	select {
	case <-p.ready:
		return nil
	case <-p.exited:
		return fmt.Errorf("it ended before it was ready: %w\n%s", p.err, p.stderr.String())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// killProcess ends the process as a power cut would, and waits until it is gone.
func (p *childProcess) killProcess() {
	if p == nil {
		return // it could not be started
	}
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.exited
}

// stopProcess asks the process to end, and returns how it did.
func (p *childProcess) stopProcess(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
		if p.err != nil {
			return fmt.Errorf("after SIGTERM: %w\n%s", p.err, p.stderr.String())
		}
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("it has not ended after SIGTERM"), ctx.Err())
	}
}

// errorOutput is what a process that is gone has written to standard error.
func (p *childProcess) errorOutput() string {
	if p == nil {
		return ""
	}
	return p.stderr.String()
}

// wasKilled reports whether the process has died of SIGKILL.
func (p *childProcess) wasKilled() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// startNode starts a hub in a process of its own: this program, once more.
func startNode(o *nodeOrders, listener *os.File) (*childProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self) //nolint:noctx,gosec // this program; it ends by a signal
	cmd.Env = append(os.Environ(), ordersVariable+"="+string(text))
	cmd.ExtraFiles = []*os.File{listener}
	if _, err := cmd.StdinPipe(); err != nil { // which ends with this process, and the hub with it
		return nil, err
	}
	return startProcess(cmd, firstWords)
}
