package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/bench/simulate/scheduler"
	"github.com/messagehub/messagehub/domain"
)

// A corruptor damages stored documents and blobs after the workload has ended without a violation. Domains, actors and
// operators then use the damaged mailbox. Each of their requests must return the correct result or an error that
// reports the damage. No hub may panic, no request may hang, a bundle that was already returned must not change, and
// other mailboxes must not be affected.
type corruptor struct {
	baseClient
	access        *directAccess
	hasForgedPage bool // true after a page and its checksum were changed together
}

// runCorruption runs the corruptor after the workload.
func (sim *simulation) runCorruption() error {
	access, err := newDirectAccess(sim)
	if err != nil {
		return err
	}
	v := &corruptor{baseClient: sim.newClient("vandal", 300), access: access}
	sim.faults.storeCorrupted.Store(true)
	sim.plan.retention, sim.plan.sweepEvery = 8*time.Minute, 2*time.Minute
	v.killHubs() // restarts the hubs, because they read their settings when they start
	if sim.plan.requestedOrigin != (domain.Origin{}) {
		var domains sync.WaitGroup
		done := make(chan struct{})
		m := &contentDomain{baseClient: sim.newClient("maker", 301), laterRNG: random.New(sim.options.Seed, 302)}
		domains.Go(func() { m.runUntil(done) })
		defer domains.Wait()
		defer close(done)
	}
	mailboxes := 4 + v.rng.IntN(4)
	other := newControlRecipient(sim)
	for n := range mailboxes {
		if err := other.sendEvents(); err != nil {
			return err
		}
		if err := v.corruptAndUse(n, v.corruptAnything); err != nil || sim.ctx.Err() != nil {
			return err
		}
	}
	if v.rng.IntN(2) == 0 {
		if err := v.plantStrayDocument(); err != nil || sim.ctx.Err() != nil {
			return err
		}
	}
	if err := other.fetchAll(); err != nil || sim.ctx.Err() != nil {
		return err
	}
	if v.rng.IntN(2) == 0 {
		if err := v.corruptGroups(); err != nil || sim.ctx.Err() != nil {
			return err
		}
	}
	return v.corruptAndUse(mailboxes, v.dropContainer)
}

// killHubs kills all hubs. New processes start in their place.
func (v *corruptor) killHubs() {
	for i := range v.sim.env.hubs {
		if h := v.sim.hubAt(i); h != nil {
			h.kill()
		}
	}
}

// corruptAndUse damages a mailbox and then runs all its clients.
func (v *corruptor) corruptAndUse(n int, damage func(recipient string) string) error {
	sim := v.sim
	if err := v.endFaults(); err != nil {
		return err
	}
	strikes := v.sim.plan.requestedOrigin != (domain.Origin{}) && v.rng.IntN(2) == 0
	sim.faults.domainsFail.Store(strikes)
	defer sim.faults.domainsFail.Store(false)
	b := newCorruptedMailbox(v, n)
	if err := b.fillMailbox(); err != nil {
		return fmt.Errorf("the mailbox of %s has not been damaged yet: %w", b.name, err)
	}
	b.isStrict, v.hasForgedPage = v.rng.IntN(3) > 0, false
	damages := 1
	if !b.isStrict {
		damages += v.rng.IntN(3)
	}
	for range damages {
		v.runAtOnce(func() string {
			what := damage(b.name)
			switch kind, _, _ := strings.Cut(what, " "); kind {
			case "bundle", "gate", "head": // pages and payloads have a checksum; these documents have none
				b.isStrict = false
			}
			b.isStrict = b.isStrict && !v.hasForgedPage
			return what
		})
	}
	if err := b.checkMailbox(); err != nil {
		return err
	}
	if v.rng.IntN(2) == 0 {
		sim.ResumeFaults(400)
		if v.rng.IntN(2) == 0 { // new hubs may have wrong settings
			v.killHubs()
		}
	}
	var all sync.WaitGroup
	if v.rng.IntN(4) == 0 {
		v.sendUnreadable(b.name)
	}
	uses := []func(){b.useAsActor, b.useAsDomain, b.useAsOperator}
	if strikes || v.rng.IntN(2) == 0 {
		b.isStrict = false
		uses = append(uses, func() { v.corruptAgain(b) })
	}
	if v.rng.IntN(3) == 0 {
		uses = append(uses, b.publishConcurrently, b.publishConcurrently)
	}
	if v.rng.IntN(2) == 0 {
		uses = append(uses, b.publishByBus)
	}
	for _, use := range uses {
		all.Go(use)
	}
	all.Wait()
	if v.rng.IntN(3) == 0 {
		sim.ResumeFaults(600)
		b.checkRepeatedly()
	}
	if v.rng.IntN(3) == 0 { // a pause that is long enough for a sweep
		v.pause(time.Duration(5+v.rng.IntN(20)) * time.Minute)
		b.useAsActor()
	}
	if err := v.endFaults(); err != nil {
		return err
	}
	return b.checkMailbox()
}

// endFaults ends all faults, and waits until all hubs run.
func (v *corruptor) endFaults() error {
	sim := v.sim
	sim.SetFaultFree(true)
	const patience = 10 * time.Minute
	for began := time.Now(); ; {
		up := 0
		for i := range sim.env.hubs {
			if sim.hubAt(i) != nil {
				up++
			}
		}
		switch {
		case up == hubCount:
			return nil
		case time.Since(began) > patience:
			return errors.New("all faults have ended, and no hub starts")
		case !v.pause(time.Second):
			return nil
		}
	}
}

// runAtOnce runs act as a single step of the simulation.
func (v *corruptor) runAtOnce(act func() string) {
	done := make(chan struct{})
	t := &scheduler.Turn{Who: v.who, What: "comes by", Proceed: func() string {
		defer close(done)
		return act()
	}}
	v.sim.Enqueue(t)
	select {
	case <-done:
	case <-v.sim.ctx.Done():
		v.sim.Remove(t)
	}
}

// corruptDocument damages one document or blob of a recipient, and describes the damage.
func (v *corruptor) corruptDocument(recipient string) string {
	byKind := make(map[string][]storedItem)
	var kinds, objects []string
	all := v.sim.env.stored.documentsOf(recipient)
	if v.rng.IntN(2) == 0 {
		all = documentsInUse(all)
	}
	for _, d := range all {
		kind := d.kindName()
		if byKind[kind] == nil {
			kinds = append(kinds, kind)
		}
		byKind[kind] = append(byKind[kind], d)
		objects = append(objects, d.blobNames()...)
	}
	v.sim.MarkReached("a document or blob was damaged")
	if len(objects) > 0 && v.rng.IntN(5) == 0 {
		return v.corruptBlob(objects[v.rng.IntN(len(objects))])
	}
	if len(kinds) == 0 {
		return "finds nothing"
	}
	kind := kinds[v.rng.IntN(len(kinds))]
	old := byKind[kind][v.rng.IntN(len(byKind[kind]))]
	d := old.clone()
	how, ctx := "", context.WithoutCancel(v.sim.ctx)
	var err error
	switch v.rng.IntN(8) {
	case 0:
		how, err = "is missing", v.access.removeDocument(ctx, d)
	case 1:
		how = "lies under another id"
		d.id += "x"
		err = errors.Join(v.access.removeDocument(ctx, old), v.access.putDocument(ctx, d))
	case 2:
		how = "lies in another partition, too"
		d.key += strangeNames[v.rng.IntN(len(strangeNames))]
		err = v.access.putDocument(ctx, d)
	case 3:
		how = "has a twin in which " + d.corruptField(v.rng)
		d.id += "x"
		err = v.access.putDocument(ctx, d)
	default:
		how = d.corruptField(v.rng)
		err = v.access.putDocument(ctx, d)
	}
	return kind + " " + d.id + " of " + recipient + " " + how + describeRefusal(err)
}

// documentsInUse returns the documents that belong to an open bundle.
func documentsInUse(all []storedItem) (found []storedItem) {
	about := map[string]bool{"head": true, "gate": true}
	for _, d := range all {
		if d.fields["state"] != "open" {
			continue
		}
		about[d.id] = true
		ranges, _ := d.fields["ranges"].([]any)
		for _, r := range ranges {
			if r, ok := r.(map[string]any); ok {
				drawer, _ := r["drawer"].(string)
				about[drawer] = true
			}
		}
	}
	for _, d := range all {
		if about[d.id] || about[d.key] || about[d.kindName()] {
			found = append(found, d)
		}
	}
	return found
}

// describeRefusal describes why the account refused the damaging write. It returns "" if err is nil.
func describeRefusal(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	return ", or so it was meant: " + text[:min(len(text), 60)]
}

// corruptBlob damages a blob.
func (v *corruptor) corruptBlob(name string) string {
	ctx, how := context.WithoutCancel(v.sim.ctx), ""
	for _, c := range [...]string{contentContainer, exchangeContainer} {
		there, err := v.access.blobs.DownloadStream(ctx, c, name, nil)
		if err != nil {
			continue
		}
		bytes := make([]byte, *there.ContentLength)
		for n := 0; n < len(bytes) && err == nil; {
			var m int
			m, err = there.Body.Read(bytes[n:])
			n += m
		}
		_ = there.Body.Close() // the body was read completely
		switch v.rng.IntN(4) {
		case 0:
			how = "is missing"
			_, err = v.access.blobs.DeleteBlob(ctx, c, name, nil)
			return "blob " + name + " " + how + describeRefusal(err)
		case 1:
			how, bytes = "is empty", nil
		case 2:
			how, bytes = "is cut off", bytes[:v.rng.IntN(len(bytes)+1)]
		default:
			if how = "has a bit that is another"; len(bytes) > 0 {
				bytes[v.rng.IntN(len(bytes))] ^= 1 << v.rng.IntN(8)
			}
		}
		_, err = v.access.blobs.UploadBuffer(ctx, c, name, bytes, nil)
		return "blob " + name + " " + how + describeRefusal(err)
	}
	return "blob " + name + " is not there anyhow"
}

// dropContainer deletes a whole container. The next hub that starts creates the container again and stores its groups.
// So no later hub may have wrong settings.
func (v *corruptor) dropContainer(string) string {
	v.sim.faults.containerDropped.Store(true)
	v.sim.stopMisconfigured()
	all := slices.DeleteFunc(containers.All(), func(c containers.Container) bool { return c.Checker != containers.Invariants })
	c := all[v.rng.IntN(len(all))].Name
	err := v.access.dropContainer(context.WithoutCancel(v.sim.ctx), c)
	v.sim.env.stored.dropContainer(c)
	if v.rng.IntN(2) == 0 {
		v.killHubs()
	}
	return "container " + c + " is gone" + describeRefusal(err)
}
