//go:build unix

package crashsites

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/steps"
)

// When says whether a process is killed before or after a step.
type When string

// The sides.
const (
	Before When = "before" // the process is killed before it sends the request
	After  When = "after"  // the process is killed after the engine has answered, and before the hub receives the answer
)

// A killSwitch kills the process in which it runs, at a step.
type killSwitch struct {
	step     steps.Name
	when     When
	left     atomic.Int64    // number of times that the step must still be reached before the kill
	sweeping bool            // true if the hub only sweeps, so that each write of a head is a step of a sweep
	die      func(at string) // kills the process, and does not return
}

func (f *killSwitch) noteBefore(step steps.Name) { f.killIfDue(step, Before) }
func (f *killSwitch) noteAfter(step steps.Name)  { f.killIfDue(step, After) }

func (f *killSwitch) killIfDue(step steps.Name, when When) {
	if step == f.step && when == f.when && f.left.Add(-1) == 0 {
		f.die(string(step) + " " + string(when))
	}
}

// killSelf sends SIGKILL to its own process, so nothing is flushed, closed or reported.
func killSelf(at string) {
	fmt.Println(lastWords, at)
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {} // wait until the signal ends the process
}

// The steps that write to a Blob account.
const (
	keep  steps.Name = "keep content"  // the hub stores payloads or a body
	share steps.Name = "share content" // the hub shares an event list with a domain
)

// A killingTransport sends requests to engines, and reports each step to the kill switch.
type killingTransport struct {
	next       policy.Transporter
	killSwitch *killSwitch
}

func (t *killingTransport) Do(req *http.Request) (*http.Response, error) {
	if err := containers.Check(req); err != nil {
		return nil, err
	}
	step := t.nameOf(req)
	t.killSwitch.noteBefore(step)
	resp, err := t.next.Do(req)
	if err == nil {
		t.killSwitch.noteAfter(step)
	}
	return resp, err
}

func (t *killingTransport) nameOf(req *http.Request) steps.Name {
	step := steps.NameOf(req)
	switch {
	case t.killSwitch.sweeping && (step == steps.Commit || step == steps.Clear):
		return steps.Retain // this write moves the floor above the unsealed drawer
	case step != steps.Other || req.Method != http.MethodPut:
	case strings.Contains(req.URL.Path, "-content/"):
		return keep
	case strings.Contains(req.URL.Path, "-exchange/"):
		return share
	}
	return step
}
