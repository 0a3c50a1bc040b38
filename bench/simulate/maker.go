package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A maker is a domain that makes the content of its bundles when the hub asks, and
// hears of those that have arrived. Now and then it fails, or is too slow, or dies.
type maker struct {
	party
	more  dice // of what came later
	lives int
	made  int // contents: no two are the same, so that those of two attempts can be told
}

// madePrefix begins a content that was made on request; the ids of the events follow,
// a line for each.
const madePrefix = "content "

// works makes content until finish is closed.
func (m *maker) works(finish <-chan struct{}) {
	for {
		if err := m.live(finish); err != nil {
			m.w.fail(err)
			return
		}
		select {
		case <-finish:
			return
		default:
		}
		if !m.pause(time.Duration(m.d.n(20)) * time.Second) {
			return
		}
	}
}

// live is one life of the domain.
func (m *maker) live(finish <-chan struct{}) error {
	m.lives++
	who := fmt.Sprintf("%s.%d", m.who, m.lives)
	line, http := m.w.newBusLine(who), &httpLine{w: m.w, who: who}
	exchange, err := m.w.exchange(http)
	if err != nil {
		return err
	}
	client, err := domainclient.New(domainclient.Options{
		Origin: m.w.plan.requested.String(), Connect: m.w.connecting(line), Exchange: exchange, RequestsAtOnce: 2, Random: m.d,
	})
	if err != nil {
		return err
	}
	defer m.w.closing(client.Close)
	ctx, cancel := context.WithCancel(m.w.ctx)
	defer cancel()
	var work sync.WaitGroup
	makes := func(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
		if m.w.vandalised.Load() && m.d.n(3) == 0 {
			m.lies(ctx, line, exchange, r)
		}
		return m.make(ctx, r)
	}
	work.Go(func() { m.goesOn(ctx, cancel, func() error { return client.Serve(ctx, makes) }) })
	work.Go(func() { m.goesOn(ctx, cancel, func() error { return client.Notices(ctx, m.hears) }) })
	dies := make(<-chan time.Time)
	if m.d.n(2) == 0 {
		timer := time.NewTimer(time.Duration(1+m.d.n(90)) * time.Second)
		defer timer.Stop()
		dies = timer.C
	}
	select {
	case <-dies:
		if !m.w.calm {
			m.w.reached("a domain died while it made content")
			http.dead.Store(true)
			line.dead.Store(true)
			line.cut()
		}
	case <-finish:
	case <-ctx.Done():
	}
	cancel()
	work.Wait()
	return nil
}

// goesOn ends the life if work has ended before.
func (m *maker) goesOn(ctx context.Context, cancel context.CancelFunc, work func() error) {
	if err := work(); err != nil && ctx.Err() == nil {
		m.w.tell(m.who + " gives up: " + err.Error())
	}
	cancel()
}

// exchange is the container that hubs and domains share, on a line.
func (w *world) exchange(line *httpLine) (*container.Client, error) {
	key, err := container.NewSharedKeyCredential(w.blobs.Name(), w.blobs.Key())
	if err != nil {
		return nil, err
	}
	return container.NewClientWithSharedKeyCredential(w.blobEndpoint()+"/"+exchange_, key, &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: line, Retry: policy.RetryOptions{MaxRetries: -1}},
	})
}

// make is the handler of requests.
func (m *maker) make(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
	ids, err := r.EventIDs(ctx)
	if err != nil {
		m.w.reached("a domain could not make content")
		return nil, err
	}
	if err := m.w.ledger.listed(r.IdempotencyID, ids); err != nil && !m.w.vandalised.Load() {
		m.w.fail(err)
	}
	if m.w.strike.Load() {
		if m.more.n(2) == 0 {
			_ = clock.Sleep(ctx, time.Minute)
		}
		return nil, errors.New("nobody is at work")
	}
	if m.w.plan.keeper && !m.w.calm && m.more.n(8) == 0 {
		m.w.busIsAway(2 * time.Minute)
	}
	if !m.w.calm {
		switch m.d.n(12) {
		case 0:
			m.w.reached("a domain could not make content")
			return nil, errors.New("the disk is full")
		case 1:
			m.w.reached("a domain could not make content")
			return nil, &domainclient.Failure{Reason: domainclient.DatasetNotAvailable, Description: "come again"}
		case 2:
			m.w.reached("a domain panicked")
			panic("a domain has its faults too")
		case 3, 4:
			m.w.reached("a domain was slow with its content")
			_ = clock.Sleep(ctx, time.Duration(15+m.d.n(45))*time.Second)
		}
	}
	m.made++
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d\n", madePrefix, m.made)
	for _, id := range ids {
		fmt.Fprintln(&b, id)
	}
	return strings.NewReader(b.String()), nil
}

// hears is told that a bundle has arrived.
func (m *maker) hears(ctx context.Context, n *domainclient.Notice) error {
	ids, err := n.EventIDs(ctx)
	if err != nil {
		return err
	}
	if !m.w.calm && m.d.n(8) == 0 {
		m.w.reached("a domain did not take a notice")
		return errors.New("not now")
	}
	if m.w.vandalised.Load() { // the ledger knows nothing of what is sent by now
		return nil
	}
	times, err := m.w.ledger.noticed(n.Recipient, n.ID, ids)
	if err != nil {
		m.w.fail(err)
	}
	if times > 1 {
		m.w.reached("a notice came twice")
	}
	return nil
}

// listed holds the ids for which content is asked to those of earlier requests.
func (l *referenceLedger) listed(process string, ids []uuid.UUID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := fmt.Sprint(ids)
	if known, ok := l.lists[process]; ok && known != list {
		return fmt.Errorf("H6: content of %s was asked for with the ids %s, and then with %s", process, known, list)
	}
	l.lists[process] = list
	for _, id := range ids {
		if l.events[id.String()] == nil {
			return fmt.Errorf("H1: content of %s was asked for with the id %s, which nobody has sent", process, id)
		}
	}
	return nil
}

// noticed notes that a domain has heard of a bundle, and returns how often it has.
func (l *referenceLedger) noticed(actor, process string, ids []uuid.UUID) (times int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, _ := strings.CutSuffix(process, "_"+actor)
	b := l.bundles[actor+"|"+id]
	switch {
	case b == nil:
		return 0, fmt.Errorf("a domain was told that %s has bundle %s, which it has not", actor, process)
	case b.asked == 0:
		return 0, fmt.Errorf("a domain was told that %s has confirmed bundle %s, which it has not", actor, process)
	case len(ids) != len(b.events):
		return 0, fmt.Errorf("a domain was told that %s has %d events in bundle %s, which has %d", actor, len(ids), process, len(b.events))
	}
	for i, e := range b.events {
		if e.ID != ids[i].String() {
			return 0, fmt.Errorf("a domain was told that bundle %s has the event %s, where it has %s", process, ids[i], e.ID)
		}
	}
	b.notices++
	return b.notices, nil
}

// unnoticed names the bundles on request that were confirmed and that no domain has
// heard of.
func (l *referenceLedger) unnoticed() (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.bundles {
		if b.confirmed && !b.isTaken && b.notices == 0 && bytes.HasPrefix(b.body, []byte(madePrefix)) {
			ids = append(ids, b.id)
		}
	}
	return ids
}

// noticesArrive waits until the domains have heard of all bundles that were confirmed.
func (w *world) noticesArrive() error {
	const patience, every = 30 * time.Minute, time.Second
	watch := party{w: w}
	for began := time.Now(); ; {
		ids := w.ledger.unnoticed()
		if len(ids) == 0 {
			return nil
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%d bundles were confirmed %s ago, and their domain was not told", len(ids), patience)
		}
		if !watch.pause(every) {
			return nil
		}
	}
}

// madeLines are the lines of a content that was made on request, in the form of events
// that travel inline.
func madeLines(body []byte) (lines [][]byte) {
	all := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
	for _, id := range all[1:] {
		lines = append(lines, fmt.Appendf(nil, `{"of":%q}`, id))
	}
	return lines
}
