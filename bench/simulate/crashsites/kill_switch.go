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

// When is on which side of a step a process dies.
type When string

// The sides.
const (
	Before When = "before" // nobody has been asked yet
	After  When = "after"  // it has been answered, and the hub does not know yet
)

// A killSwitch kills the process it is in, once.
type killSwitch struct {
	step     steps.Name
	when     When
	left     atomic.Int64    // it burns when so many have come by
	sweeping bool            // nothing is saved meanwhile, so that a head is written by sweeps alone
	die      func(at string) // does not return
}

func (f *killSwitch) noteBefore(step steps.Name) { f.killIfDue(step, Before) }
func (f *killSwitch) noteAfter(step steps.Name)  { f.killIfDue(step, After) }

func (f *killSwitch) killIfDue(step steps.Name, when When) {
	if step == f.step && when == f.when && f.left.Add(-1) == 0 {
		f.die(string(step) + " " + string(when))
	}
}

// killSelf ends the process as nothing else does: nothing is flushed, closed or told.
func killSelf(at string) {
	fmt.Println(lastWords, at)
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {} // until it has come
}

// The steps of content, where it lies in an account.
const (
	keep  steps.Name = "keep content"  // payloads, or a body
	share steps.Name = "share content" // with a domain
)

// A killingTransport carries requests to engines, and burns a fuse.
type killingTransport struct {
	next policy.Transporter
	fuse *killSwitch
}

func (t *killingTransport) Do(req *http.Request) (*http.Response, error) {
	if err := containers.Check(req); err != nil {
		return nil, err
	}
	step := t.nameOf(req)
	t.fuse.noteBefore(step)
	resp, err := t.next.Do(req)
	if err == nil {
		t.fuse.noteAfter(step)
	}
	return resp, err
}

func (t *killingTransport) nameOf(req *http.Request) steps.Name {
	step := steps.NameOf(req)
	switch {
	case t.fuse.sweeping && (step == steps.Commit || step == steps.Clear):
		return steps.Retain // the floor takes the drawer that was being filled
	case step != steps.Other || req.Method != http.MethodPut:
	case strings.Contains(req.URL.Path, "-content/"):
		return keep
	case strings.Contains(req.URL.Path, "-exchange/"):
		return share
	}
	return step
}
