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

// A childProcess is a started program and its output.
type childProcess struct {
	cmd    *exec.Cmd
	ready  chan struct{} // closed when the process has printed the greeting
	first  string        // text after the greeting on the same line
	exited chan struct{} // closed when the process has exited and its output was read
	err    error         // error with which the process exited
	last   string        // last line of the output, if the kill switch killed the process

	stderr bytes.Buffer // may be read only after the process has exited
}

// startProcess starts a program that prints a line beginning with greeting when it is ready.
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

// killProcess kills the process, and waits until it has exited.
func (p *childProcess) killProcess() {
	if p == nil {
		return // the process did not start
	}
	_ = p.cmd.Process.Kill() // the process may have exited already
	<-p.exited
}

// stopProcess asks the process to stop, and returns its exit error.
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

// errorOutput returns the standard error of an exited process.
func (p *childProcess) errorOutput() string {
	if p == nil {
		return ""
	}
	return p.stderr.String()
}

// wasKilled reports whether SIGKILL ended the process.
func (p *childProcess) wasKilled() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// startNode starts a hub as a child process, by running this program again.
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
	if _, err := cmd.StdinPipe(); err != nil { // !!
		return nil, err
	}
	return startProcess(cmd, firstWords)
}
