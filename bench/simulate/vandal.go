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
	"github.com/messagehub/messagehub/domain"
)

// A vandal damages what is stored, once the normal course of a world has come to its
// end and all of it was right. What hubs, domains, actors and operators then do to a
// mailbox must end in an answer: that it is damaged, or what is right. Nobody panics,
// nobody waits for ever, no bundle that was handed out becomes another, and other
// mailboxes have no trouble of it.
type vandal struct {
	party
	door   *backDoor
	forged bool // a page, so that its checksums are right
}

// vandalise is what happens in a world with a vandal after its normal course.
func (w *world) vandalise() error {
	door, err := newBackDoor(w)
	if err != nil {
		return err
	}
	v := &vandal{party: w.newParty("vandal", 300), door: door}
	w.vandalised.Store(true)
	w.plan.retention, w.plan.sweepEvery = 8*time.Minute, 2*time.Minute
	v.restart() // for they have read their settings
	if w.plan.requested != (domain.Origin{}) {
		var making sync.WaitGroup
		over := make(chan struct{})
		m := &maker{party: w.newParty("maker", 301), more: newDice(w.o.Seed, 302)}
		making.Go(func() { m.works(over) })
		defer making.Wait()
		defer close(over)
	}
	wards := 4 + v.d.n(4)
	other := newBystander(w)
	for n := range wards {
		if err := other.sends(); err != nil {
			return err
		}
		if err := v.ruin(n, v.anything); err != nil || w.ctx.Err() != nil {
			return err
		}
	}
	if v.d.n(2) == 0 {
		if err := v.plants(); err != nil || w.ctx.Err() != nil {
			return err
		}
	}
	if err := other.fetches(); err != nil || w.ctx.Err() != nil {
		return err
	}
	if v.d.n(2) == 0 {
		if err := v.regroup(); err != nil || w.ctx.Err() != nil {
			return err
		}
	}
	return v.ruin(wards, v.drop)
}

// restart kills all hubs, after which others start.
func (v *vandal) restart() {
	for i := range v.w.hubs {
		if h := v.w.hub(i); h != nil {
			h.kill()
		}
	}
}

// ruin damages a mailbox and has everybody use it.
func (v *vandal) ruin(n int, damage func(recipient string) string) error {
	w := v.w
	if err := v.calms(); err != nil {
		return err
	}
	strikes := v.w.plan.requested != (domain.Origin{}) && v.d.n(2) == 0
	w.strike.Store(strikes)
	defer w.strike.Store(false)
	b := newWard(v, n)
	if err := b.fill(); err != nil {
		return fmt.Errorf("the mailbox of %s has not been damaged yet: %w", b.name, err)
	}
	b.strict, v.forged = v.d.n(3) > 0, false
	damages := 1
	if !b.strict {
		damages += v.d.n(3)
	}
	for range damages {
		v.does(func() string {
			what := damage(b.name)
			switch kind, _, _ := strings.Cut(what, " "); kind {
			case "bundle", "gate", "head": // which are under no checksum, as pages and payloads are
				b.strict = false
			}
			b.strict = b.strict && !v.forged
			return what
		})
	}
	if err := b.check(); err != nil {
		return err
	}
	if v.d.n(2) == 0 {
		w.roughens(400)
		if v.d.n(2) == 0 { // some with wrong settings
			v.restart()
		}
	}
	var all sync.WaitGroup
	if v.d.n(4) == 0 {
		v.announcesNothing(b.name)
	}
	uses := []func(){b.fetch, b.announce, b.operate}
	if strikes || v.d.n(2) == 0 {
		b.strict = false
		uses = append(uses, func() { v.comesAgain(b) })
	}
	if v.d.n(3) == 0 {
		uses = append(uses, b.announceToo, b.announceToo)
	}
	if v.d.n(2) == 0 {
		uses = append(uses, b.announceByBus)
	}
	for _, use := range uses {
		all.Go(use)
	}
	all.Wait()
	if v.d.n(3) == 0 {
		w.roughens(600)
		b.inspects()
	}
	if v.d.n(3) == 0 { // a night, in which the sweep comes by
		v.pause(time.Duration(5+v.d.n(20)) * time.Minute)
		b.fetch()
	}
	if err := v.calms(); err != nil {
		return err
	}
	return b.check()
}

// calms ends the bad weather, and waits for the hubs.
func (v *vandal) calms() error {
	w := v.w
	w.scheduler.mu.Lock()
	w.calm = true
	w.scheduler.mu.Unlock()
	w.rouse()
	const patience = 10 * time.Minute
	for began := time.Now(); ; {
		up := 0
		for i := range w.hubs {
			if w.hub(i) != nil {
				up++
			}
		}
		switch {
		case up == hubs:
			return nil
		case time.Since(began) > patience:
			return errors.New("nothing is wrong any more, and no hub starts")
		case !v.pause(time.Second):
			return nil
		}
	}
}

// roughens has bad weather for so many steps.
func (w *world) roughens(steps int) {
	w.scheduler.mu.Lock()
	defer w.scheduler.mu.Unlock()
	w.calm, w.weather.lasts = false, w.steps+steps
}

// does lets the vandal do something at once, between the steps of all others.
func (v *vandal) does(something func() string) {
	over := make(chan struct{})
	t := &turn{who: v.who, what: "comes by", goes: func() string {
		defer close(over)
		return something()
	}}
	v.w.wait(t)
	select {
	case <-over:
	case <-v.w.ctx.Done():
		v.w.leave(t)
	}
}

// damage damages one thing that is stored for a recipient, and says how.
func (v *vandal) damage(recipient string) string {
	byKind := make(map[string][]document)
	var kinds, objects []string
	all := v.w.shelf.documentsOf(recipient)
	if v.d.n(2) == 0 {
		all = inUse(all)
	}
	for _, d := range all {
		kind := d.kind()
		if byKind[kind] == nil {
			kinds = append(kinds, kind)
		}
		byKind[kind] = append(byKind[kind], d)
		objects = append(objects, d.objects()...)
	}
	v.w.reached("something was damaged")
	if len(objects) > 0 && v.d.n(5) == 0 {
		return v.damageObject(objects[v.d.n(len(objects))])
	}
	if len(kinds) == 0 {
		return "finds nothing"
	}
	kind := kinds[v.d.n(len(kinds))]
	old := byKind[kind][v.d.n(len(byKind[kind]))]
	d := old.copied()
	how, ctx := "", context.WithoutCancel(v.w.ctx)
	var err error
	switch v.d.n(8) {
	case 0:
		how, err = "is missing", v.door.remove(ctx, d)
	case 1:
		how = "lies under another id"
		d.id += "x"
		err = errors.Join(v.door.remove(ctx, old), v.door.put(ctx, d))
	case 2:
		how = "lies in another partition, too"
		d.key += strangeNames[v.d.n(len(strangeNames))]
		err = v.door.put(ctx, d)
	case 3:
		how = "has a twin in which " + d.damage(v.d)
		d.id += "x"
		err = v.door.put(ctx, d)
	default:
		how = d.damage(v.d)
		err = v.door.put(ctx, d)
	}
	return kind + " " + d.id + " of " + recipient + " " + how + refusal(err)
}

// inUse returns of documents those that say something about an open bundle.
func inUse(all []document) (found []document) {
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
		if about[d.id] || about[d.key] || about[d.kind()] {
			found = append(found, d)
		}
	}
	return found
}

// refusal says that the account would not have a damage.
func refusal(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	return ", or so it was meant: " + text[:min(len(text), 60)]
}

// damageObject damages a blob.
func (v *vandal) damageObject(name string) string {
	ctx, how := context.WithoutCancel(v.w.ctx), ""
	for _, c := range [...]string{content_, exchange_} {
		there, err := v.door.blobs.DownloadStream(ctx, c, name, nil)
		if err != nil {
			continue
		}
		bytes := make([]byte, *there.ContentLength)
		for n := 0; n < len(bytes) && err == nil; {
			var m int
			m, err = there.Body.Read(bytes[n:])
			n += m
		}
		_ = there.Body.Close() // it was read
		switch v.d.n(4) {
		case 0:
			how = "is missing"
			_, err = v.door.blobs.DeleteBlob(ctx, c, name, nil)
			return "blob " + name + " " + how + refusal(err)
		case 1:
			how, bytes = "is empty", nil
		case 2:
			how, bytes = "is cut off", bytes[:v.d.n(len(bytes)+1)]
		default:
			if how = "has a bit that is another"; len(bytes) > 0 {
				bytes[v.d.n(len(bytes))] ^= 1 << v.d.n(8)
			}
		}
		_, err = v.door.blobs.UploadBuffer(ctx, c, name, bytes, nil)
		return "blob " + name + " " + how + refusal(err)
	}
	return "blob " + name + " is not there anyhow"
}

// drop takes a whole container away. The hubs that start now make a new one, and the
// first says what the groups are: from now on none of them is to have wrong settings.
func (v *vandal) drop(string) string {
	v.w.bare.Store(true)
	v.w.setsRight()
	all := slices.DeleteFunc(containers.All(), func(c containers.Container) bool { return c.Judge != containers.Invariants })
	c := all[v.d.n(len(all))].Name
	err := v.door.drop(context.WithoutCancel(v.w.ctx), c)
	v.w.shelf.forget(c)
	if v.d.n(2) == 0 {
		v.restart()
	}
	return "container " + c + " is gone" + refusal(err)
}
