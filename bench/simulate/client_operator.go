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

// An operator reads queues, releases and skips bundles, replays the last bundle, freezes queues for a while, and
// checks the store.
type operator struct{ baseClient }

// runUntil sends up to twelve orders and checks of the store. It returns early if finish is closed.
func (o *operator) runUntil(finish <-chan struct{}) {
	const actions = 12
	for range actions {
		if !o.pause(time.Duration(1+o.rng.IntN(10_000)) * time.Millisecond) {
			return
		}
		select {
		case <-finish:
			return
		default:
		}
		actor := o.rng.IntN(o.sim.plan.recipients)
		switch o.rng.IntN(7) {
		case 0, 1, 2:
			o.takeOpenBundle(actorName(actor))
		case 3:
			o.freezeQueue(actorName(actor))
		case 4, 5:
			o.replayLast(actorName(actor), o.sim.plan.groups[o.rng.IntN(len(o.sim.plan.groups))])
		default:
			o.sim.checkStore(&o.baseClient, o.rng.IntN(2) == 0)
			o.sim.MarkReached("a check was made while the hub ran")
		}
	}
}

// sendOrder repeats a request until a hub responds. isUnsure is true if the outcome of an earlier attempt is unknown:
// the response may then describe the effect of that attempt.
func (o *operator) sendOrder(method, path string, body any) (r *hubReply, isUnsure bool) {
	text, err := json.Marshal(body)
	if err != nil {
		o.sim.Fail(err)
	}
	for {
		r, err := o.call(o.sim.ctx, method, "/v1/admin/"+path, text, "Content-Type", "application/json")
		switch {
		case err == nil && r.status != http.StatusServiceUnavailable && r.status != http.StatusTooManyRequests:
			return r, isUnsure
		case err != nil || problemName(r.body) != " unavailable":
			isUnsure = true
		}
		if !o.pause(time.Duration(o.rng.IntN(2000)) * time.Millisecond) {
			return nil, true
		}
	}
}

// orderBody returns the body of an order. about holds alternating names and values of further fields.
func orderBody(about ...string) map[string]string {
	order := map[string]string{"who": "the operator", "why": "it was stuck"}
	for i := 0; i+1 < len(about); i += 2 {
		order[about[i]] = about[i+1]
	}
	return order
}

// takeOpenBundle releases or skips an open bundle.
func (o *operator) takeOpenBundle(actor string) {
	r, _ := o.sendOrder(http.MethodGet, "queues/"+actor, nil)
	if r == nil || r.status != http.StatusOK {
		return
	}
	var queue struct {
		Groups []struct{ Open *struct{ BundleID string } }
	}
	if err := json.Unmarshal(r.body, &queue); err != nil {
		o.sim.Fail(fmt.Errorf("the response about the queue of %s cannot be read: %s: %w", actor, r.body, err))
		return
	}
	for _, g := range queue.Groups {
		if g.Open == nil || !o.sim.work.ledger.beginOrder(actor, g.Open.BundleID) {
			continue // no client has received the bundle
		}
		o.takeBundle(actor, g.Open.BundleID)
		return
	}
}

func (o *operator) takeBundle(actor, id string) {
	what := []string{"release", "release", "skip"}[o.rng.IntN(3)]
	if what == "release" {
		o.sim.work.ledger.beginRelease(actor, id)
	}
	r, isUnsure := o.sendOrder(http.MethodPost, "queues/"+actor+"/"+what, orderBody("bundleId", id))
	if r == nil {
		return
	}
	isDone := r.status == http.StatusNoContent
	switch {
	case isDone:
	case r.status != http.StatusNotFound && r.status != http.StatusConflict:
		o.sim.Fail(fmt.Errorf("%s of %s returned %d %s", what, id, r.status, r.body))
		return
	case isUnsure:
		o.sim.MarkReached("the answer to an order was lost")
		isDone = o.isRecorded(actor, what, id)
	}
	o.sim.work.ledger.endOrder(actor, id, what, isDone)
	if isDone && what == "skip" {
		o.sim.MarkReached("a bundle was skipped")
	}
}

// isRecorded reports whether an order was executed. It waits until faults have ended, so that no read is stale.
func (o *operator) isRecorded(actor, what, id string) bool {
	for !o.sim.FaultFree {
		if !o.pause(time.Second) {
			return false
		}
	}
	r, _ := o.sendOrder(http.MethodGet, "queues/"+actor+"/records?most=1000", nil)
	if r == nil {
		return false
	}
	var answer struct {
		Records []struct{ What, BundleID string }
	}
	if err := json.Unmarshal(r.body, &answer); err != nil || r.status != http.StatusOK {
		o.sim.Fail(fmt.Errorf("the request for the records of %s returned %d %s: %w", actor, r.status, r.body, err))
	}
	for _, found := range answer.Records {
		if found.What == what && found.BundleID == id {
			return true
		}
	}
	return false
}

// freezeQueue freezes a queue for a while.
func (o *operator) freezeQueue(actor string) {
	o.sim.work.ledger.beginFreeze(actor)
	r, _ := o.sendOrder(http.MethodPost, "queues/"+actor+"/freeze", orderBody())
	if r == nil || r.status == http.StatusNotFound { // no event was ever stored for the actor
		return
	}
	if r.status != http.StatusNoContent {
		o.sim.Fail(fmt.Errorf("a freeze of %s returned %d %s", actor, r.status, r.body))
		return
	}
	o.sim.MarkReached("a queue was frozen")
	o.sim.work.ledger.endFreeze(actor)
	o.pause(time.Duration(o.rng.IntN(40)) * time.Second)
	o.sim.work.ledger.beginFreeze(actor)
	if r, _ = o.sendOrder(http.MethodPost, "queues/"+actor+"/thaw", orderBody()); r != nil && r.status != http.StatusNoContent {
		o.sim.Fail(fmt.Errorf("an unfreeze of %s returned %d %s", actor, r.status, r.body))
	}
}

// replayLast replays the most recently closed bundle of a group.
func (o *operator) replayLast(actor, group string) {
	o.sim.work.ledger.beginReplay(actor)
	r, isUnsure := o.sendOrder(http.MethodPost, "queues/"+actor+"/replay", orderBody("group", group))
	if r == nil {
		return
	}
	var bundle struct{ BundleID string }
	switch r.status {
	case http.StatusOK:
		if err := json.Unmarshal(r.body, &bundle); err != nil {
			o.sim.Fail(fmt.Errorf("a replay returned %s: %w", r.body, err))
		}
	case http.StatusNotFound, http.StatusConflict:
	default:
		o.sim.Fail(fmt.Errorf("a replay for %s returned %d %s", actor, r.status, r.body))
	}
	if isUnsure {
		o.sim.MarkReached("the answer to an order was lost")
	}
	o.sim.work.ledger.endReplay(actor, bundle.BundleID, isUnsure)
}

// checkStore requests a check of the store from a hub. It returns the report, or nil if the check did not complete. If
// the check finds damage, the simulation fails.
func (sim *simulation) checkStore(p *baseClient, repair bool) *rules.CheckReport {
	r, err := p.call(sim.ctx, http.MethodPost, "/v1/admin/check", fmt.Appendf(nil, `{"repair":%t}`, repair), "Content-Type", "application/json")
	if err != nil || r.status != http.StatusOK {
		return nil
	}
	for _, line := range bytes.Split(bytes.TrimSpace(r.body), []byte("\n")) {
		var result struct {
			Finding *rules.Finding
			Report  *rules.CheckReport
		}
		if err := json.Unmarshal(line, &result); err != nil {
			sim.Fail(fmt.Errorf("a check returned a line that cannot be read: %s: %w", line, err))
			return nil
		}
		if result.Finding != nil && result.Finding.Damage {
			sim.Fail(fmt.Errorf("a check found damage: %s", result.Finding))
		}
		if result.Report != nil {
			return result.Report
		}
	}
	return nil
}

// verifyStore checks the store twice: first with repair, then without. After the repair, a finding is an error.
func (sim *simulation) verifyStore() error {
	p := sim.newClient("checker", 60)
	for _, repair := range []bool{true, false} {
		var report *rules.CheckReport
		for tries := 0; report == nil; tries++ {
			if tries > 0 && !p.pause(time.Second) {
				return nil
			}
			if tries == 100 {
				return fmt.Errorf("a check was not completed in %d attempts", tries)
			}
			report = sim.checkStore(&p, repair)
		}
		left := slices.DeleteFunc(report.Findings, func(f rules.Finding) bool {
			return f.Repaired || f.Kind == "tail-left" // a hub that writes tails left this tail to a hub that does not write tails
		})
		if len(left) > 0 {
			return fmt.Errorf("at the end, a check with repair %t found %d faults and repaired %d of them: %v", repair, report.Found, report.Repaired, left)
		}
	}
	return nil
}
