package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	rules "github.com/messagehub/messagehub/domain/hub"
)

// An operator does what operators do: looks at queues, takes bundles back, skips them,
// hands the last one out again, freezes queues for a while, and checks the store.
type operator struct{ party }

// acts gives some orders, until finish is closed.
func (o *operator) acts(finish <-chan struct{}) {
	const deeds = 12
	for range deeds {
		if !o.pause(time.Duration(1+o.d.n(10_000)) * time.Millisecond) {
			return
		}
		select {
		case <-finish:
			return
		default:
		}
		actor := o.d.n(o.w.plan.recipients)
		switch o.d.n(7) {
		case 0, 1, 2:
			o.takes(actorName(actor))
		case 3:
			o.freezes(actorName(actor))
		case 4, 5:
			o.replays(actorName(actor), o.w.plan.groups[o.d.n(len(o.w.plan.groups))])
		default:
			o.w.checks(&o.party, o.d.n(2) == 0)
			o.w.reached("a check was made while the hub ran")
		}
	}
}

// order asks for something until the answer is known. It reports whether there was one
// before that was not: then the answer may be due to that one.
func (o *operator) order(method, path string, body any) (r *reply, isUnsure bool) {
	text, err := json.Marshal(body)
	if err != nil {
		o.w.fail(err)
	}
	for {
		r, err := o.call(o.w.ctx, method, "/v1/admin/"+path, text, "Content-Type", "application/json")
		switch {
		case err == nil && r.status != http.StatusServiceUnavailable && r.status != http.StatusTooManyRequests:
			return r, isUnsure
		case err != nil || problemOf(r.body) != " unavailable":
			isUnsure = true
		}
		if !o.pause(time.Duration(o.d.n(2000)) * time.Millisecond) {
			return nil, true
		}
	}
}

// anOrder is who and why, and about what.
func anOrder(about ...string) map[string]string {
	order := map[string]string{"who": "the operator", "why": "it was stuck"}
	for i := 0; i+1 < len(about); i += 2 {
		order[about[i]] = about[i+1]
	}
	return order
}

// takes takes an open bundle back, or skips it.
func (o *operator) takes(actor string) {
	r, _ := o.order(http.MethodGet, "queues/"+actor, nil)
	if r == nil || r.status != http.StatusOK {
		return
	}
	var queue struct {
		Groups []struct{ Open *struct{ BundleID string } }
	}
	if err := json.Unmarshal(r.body, &queue); err != nil {
		o.w.fail(fmt.Errorf("the queue of %s is shown as %s: %w", actor, r.body, err))
		return
	}
	for _, g := range queue.Groups {
		if g.Open == nil || !o.w.ledger.orderBegins(actor, g.Open.BundleID) {
			continue // nobody outside knows it yet
		}
		o.take(actor, g.Open.BundleID)
		return
	}
}

func (o *operator) take(actor, id string) {
	what := []string{"release", "release", "skip"}[o.d.n(3)]
	if what == "release" {
		o.w.ledger.releaseBegins(actor, id)
	}
	r, isUnsure := o.order(http.MethodPost, "queues/"+actor+"/"+what, anOrder("bundleId", id))
	if r == nil {
		return
	}
	isDone := r.status == http.StatusNoContent
	switch {
	case isDone:
	case r.status != http.StatusNotFound && r.status != http.StatusConflict:
		o.w.fail(fmt.Errorf("%s of %s was answered %d %s", what, id, r.status, r.body))
		return
	case isUnsure:
		o.w.reached("an order was given whose answer was lost")
		isDone = o.isRecorded(actor, what, id)
	}
	o.w.ledger.orderEnds(actor, id, what, isDone)
	if isDone && what == "skip" {
		o.w.reached("a bundle was skipped")
	}
}

// isRecorded reports whether an order was carried out. It waits until what is read is
// never old.
func (o *operator) isRecorded(actor, what, id string) bool {
	for !o.w.calm {
		if !o.pause(time.Second) {
			return false
		}
	}
	r, _ := o.order(http.MethodGet, "queues/"+actor+"/records?most=1000", nil)
	if r == nil {
		return false
	}
	var answer struct {
		Records []struct{ What, BundleID string }
	}
	if err := json.Unmarshal(r.body, &answer); err != nil || r.status != http.StatusOK {
		o.w.fail(fmt.Errorf("the records of %s are %d %s: %w", actor, r.status, r.body, err))
	}
	for _, found := range answer.Records {
		if found.What == what && found.BundleID == id {
			return true
		}
	}
	return false
}

// freezes freezes a queue for a while.
func (o *operator) freezes(actor string) {
	o.w.ledger.freezeBegins(actor)
	r, _ := o.order(http.MethodPost, "queues/"+actor+"/freeze", anOrder())
	if r == nil || r.status == http.StatusNotFound { // nothing was ever sent to it
		return
	}
	if r.status != http.StatusNoContent {
		o.w.fail(fmt.Errorf("to freeze %s was answered %d %s", actor, r.status, r.body))
		return
	}
	o.w.reached("a queue was frozen")
	o.w.ledger.freezeEnds(actor)
	o.pause(time.Duration(o.d.n(40)) * time.Second)
	o.w.ledger.freezeBegins(actor)
	if r, _ = o.order(http.MethodPost, "queues/"+actor+"/thaw", anOrder()); r != nil && r.status != http.StatusNoContent {
		o.w.fail(fmt.Errorf("to thaw %s was answered %d %s", actor, r.status, r.body))
	}
}

// replays has the bundle that was closed last handed out again.
func (o *operator) replays(actor, group string) {
	o.w.ledger.replayBegins(actor)
	r, isUnsure := o.order(http.MethodPost, "queues/"+actor+"/replay", anOrder("group", group))
	if r == nil {
		return
	}
	var bundle struct{ BundleID string }
	switch r.status {
	case http.StatusOK:
		if err := json.Unmarshal(r.body, &bundle); err != nil {
			o.w.fail(fmt.Errorf("a replay was answered %s: %w", r.body, err))
		}
	case http.StatusNotFound, http.StatusConflict:
	default:
		o.w.fail(fmt.Errorf("a replay for %s was answered %d %s", actor, r.status, r.body))
	}
	if isUnsure {
		o.w.reached("an order was given whose answer was lost")
	}
	o.w.ledger.replayEnds(actor, bundle.BundleID, isUnsure)
}

// checks has a hub check what is stored, and returns what it says in the end, nil if it
// did not come to one. What is damaged is never right.
func (w *world) checks(p *party, repair bool) *rules.CheckReport {
	r, err := p.call(w.ctx, http.MethodPost, "/v1/admin/check", fmt.Appendf(nil, `{"repair":%t}`, repair), "Content-Type", "application/json")
	if err != nil || r.status != http.StatusOK {
		return nil
	}
	for _, line := range bytes.Split(bytes.TrimSpace(r.body), []byte("\n")) {
		var said struct {
			Finding *rules.Finding
			Report  *rules.CheckReport
		}
		if err := json.Unmarshal(line, &said); err != nil {
			w.fail(fmt.Errorf("a check says %s: %w", line, err))
			return nil
		}
		if said.Finding != nil && said.Finding.Damage {
			w.fail(fmt.Errorf("a check has found damage: %s", said.Finding))
		}
		if said.Report != nil {
			return said.Report
		}
	}
	return nil
}

// endsWhole holds what is stored to the invariants, as an operator does: what a check
// can mend may be amiss, but not after it was mended.
func (w *world) endsWhole() error {
	p := w.newParty("checker", 60)
	for _, repair := range []bool{true, false} {
		var report *rules.CheckReport
		for tries := 0; report == nil; tries++ {
			if tries > 0 && !p.pause(time.Second) {
				return nil
			}
			if tries == 100 {
				return fmt.Errorf("a check did not come to its end in %d tries", tries)
			}
			report = w.checks(&p, repair)
		}
		left := slices.DeleteFunc(report.Findings, func(f rules.Finding) bool {
			return f.Mended || f.Kind == "tail-left" // by a hub that writes tails, for one that does not
		})
		if len(left) > 0 {
			return fmt.Errorf("in the end, with repair %t, a check finds %d and mends %d: %v", repair, report.Found, report.Mended, left)
		}
	}
	return nil
}
