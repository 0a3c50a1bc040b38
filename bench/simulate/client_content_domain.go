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
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A contentDomain is a domain that produces the content of its bundles on request, and is notified of dequeued
// bundles. Sometimes it fails, is slow or dies.
type contentDomain struct {
	baseClient
	laterRNG random.Source // source for new random decisions, so that the decisions of older seeds do not change
	starts   int
	contents int // number of contents so far; each content contains its number, so that two attempts differ
}

// requestedPrefix is the prefix of content that was produced on request. The ids of the events follow, one per line.
const requestedPrefix = "content "

// runUntil produces content until finish is closed.
func (m *contentDomain) runUntil(finish <-chan struct{}) {
	for {
		if err := m.runOnce(finish); err != nil {
			m.sim.Fail(err)
			return
		}
		select {
		case <-finish:
			return
		default:
		}
		if !m.pause(time.Duration(m.rng.IntN(20)) * time.Second) {
			return
		}
	}
}

// runOnce runs one process of the domain, until the process dies or stops, or finish is closed.
func (m *contentDomain) runOnce(finish <-chan struct{}) error {
	m.starts++
	who := fmt.Sprintf("%s.%d", m.who, m.starts)
	line, http := m.sim.newBusTransport(who), &httpTransport{sim: m.sim, who: who}
	exchange, err := m.sim.contentClient(http)
	if err != nil {
		return err
	}
	client, err := domainclient.New(domainclient.Options{
		Origin: m.sim.plan.requestedOrigin.String(), Connect: m.sim.busConnector(line), Exchange: exchange, RequestsAtOnce: 2, Random: m.rng,
	})
	if err != nil {
		return err
	}
	defer m.sim.closeInTime(client.Close)
	ctx, cancel := context.WithCancel(m.sim.ctx)
	defer cancel()
	var work sync.WaitGroup
	makes := func(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
		if m.sim.faults.storeCorrupted.Load() && m.rng.IntN(3) == 0 {
			m.sendMalformedReply(ctx, line, exchange, r)
		}
		return m.makeContent(ctx, r)
	}
	work.Go(func() { m.runOrCancel(ctx, cancel, func() error { return client.Serve(ctx, makes) }) })
	work.Go(func() { m.runOrCancel(ctx, cancel, func() error { return client.Notices(ctx, m.takeNotice) }) })
	dies := make(<-chan time.Time)
	if m.rng.IntN(2) == 0 {
		timer := time.NewTimer(time.Duration(1+m.rng.IntN(90)) * time.Second)
		defer timer.Stop()
		dies = timer.C
	}
	select {
	case <-dies:
		if !m.sim.FaultFree {
			m.sim.MarkReached("a domain died while it made content")
			http.dead.Store(true)
			line.dead.Store(true)
			line.cutConnections()
		}
	case <-finish:
	case <-ctx.Done():
	}
	cancel()
	work.Wait()
	return nil
}

// runOrCancel runs work, and then calls cancel, which ends all other work of the domain.
func (m *contentDomain) runOrCancel(ctx context.Context, cancel context.CancelFunc, work func() error) {
	if err := work(); err != nil && ctx.Err() == nil {
		m.sim.Log(m.who + " gives up: " + err.Error())
	}
	cancel()
}

// contentClient returns a client of the container that hubs and domains share.
func (sim *simulation) contentClient(line *httpTransport) (*container.Client, error) {
	key, err := container.NewSharedKeyCredential(sim.env.blobs.Name(), sim.env.blobs.Key())
	if err != nil {
		return nil, err
	}
	return container.NewClientWithSharedKeyCredential(sim.blobEndpoint()+"/"+exchangeContainer, key, &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: line, Retry: policy.RetryOptions{MaxRetries: -1}},
	})
}

// makeContent produces the content for a request.
func (m *contentDomain) makeContent(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
	ids, err := r.EventIDs(ctx)
	if err != nil {
		m.sim.MarkReached("a domain could not make content")
		return nil, err
	}
	if err := m.sim.work.ledger.noteListed(r.IdempotencyID, ids); err != nil && !m.sim.faults.storeCorrupted.Load() {
		m.sim.Fail(err)
	}
	if m.sim.faults.domainsFail.Load() {
		if m.laterRNG.IntN(2) == 0 {
			_ = clock.Sleep(ctx, time.Minute)
		}
		return nil, errors.New("the content domain is unavailable")
	}
	if m.sim.plan.misconfiguresBus && !m.sim.FaultFree && m.laterRNG.IntN(8) == 0 {
		m.sim.makeBusUnreachable(2 * time.Minute)
	}
	if !m.sim.FaultFree {
		switch m.rng.IntN(12) {
		case 0:
			m.sim.MarkReached("a domain could not make content")
			return nil, errors.New("the disk is full")
		case 1:
			m.sim.MarkReached("a domain could not make content")
			return nil, &domainclient.Failure{Reason: domainclient.DatasetNotAvailable, Description: "come again"}
		case 2:
			m.sim.MarkReached("a domain panicked")
			panic("a domain has its faults too")
		case 3, 4:
			m.sim.MarkReached("a domain was slow with its content")
			_ = clock.Sleep(ctx, time.Duration(15+m.rng.IntN(45))*time.Second)
		}
	}
	m.contents++
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d\n", requestedPrefix, m.contents)
	for _, id := range ids {
		fmt.Fprintln(&b, id)
	}
	return strings.NewReader(b.String()), nil
}

// takeNotice processes the notice that a bundle was dequeued.
func (m *contentDomain) takeNotice(ctx context.Context, n *domainclient.Notice) error {
	ids, err := n.EventIDs(ctx)
	if err != nil {
		return err
	}
	if !m.sim.FaultFree && m.rng.IntN(8) == 0 {
		m.sim.MarkReached("a domain rejected a notice")
		return errors.New("not now")
	}
	if m.sim.faults.storeCorrupted.Load() { // after the corruption, sent events are not recorded in the ledger
		return nil
	}
	times, err := m.sim.work.ledger.noteNotice(n.Recipient, n.ID, ids)
	if err != nil {
		m.sim.Fail(err)
	}
	if times > 1 {
		m.sim.MarkReached("a notice came twice")
	}
	return nil
}

// noteListed records the event ids of a content request. It returns an error if an earlier request for the same bundle
// had different ids.
func (l *referenceLedger) noteListed(process string, ids []uuid.UUID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := fmt.Sprint(ids)
	if known, ok := l.lists[process]; ok && known != list {
		return fmt.Errorf("H6: the content of %s was requested with the ids %s, and then with %s", process, known, list)
	}
	l.lists[process] = list
	for _, id := range ids {
		if l.events[id.String()] == nil {
			return fmt.Errorf("H1: the content of %s was requested with the id %s, which no sender sent", process, id)
		}
	}
	return nil
}

// noteNotice records that a domain was notified of a bundle. It returns the number of notices for the bundle so far.
func (l *referenceLedger) noteNotice(actor, process string, ids []uuid.UUID) (times int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, _ := strings.CutSuffix(process, "_"+actor)
	b := l.bundles[actor+"|"+id]
	switch {
	case b == nil:
		return 0, fmt.Errorf("a domain was notified of bundle %[2]s for %[1]s, which has not received such a bundle", actor, process)
	case b.dequeues == 0:
		return 0, fmt.Errorf("a domain was notified that %s has acknowledged bundle %s, but it has not", actor, process)
	case len(ids) != len(b.events):
		return 0, fmt.Errorf("a domain was notified of bundle %[3]s for %[1]s with %[2]d events; the bundle has %[4]d", actor, len(ids), process, len(b.events))
	}
	for i, e := range b.events {
		if e.ID != ids[i].String() {
			return 0, fmt.Errorf("a domain was notified of bundle %s with event %s instead of %s", process, ids[i], e.ID)
		}
	}
	b.notices++
	return b.notices, nil
}

// unnoticedBundles returns the confirmed bundles with requested content for which no domain received a notice.
func (l *referenceLedger) unnoticedBundles() (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.bundles {
		if b.isConfirmed && !b.isTaken && b.notices == 0 && bytes.HasPrefix(b.body, []byte(requestedPrefix)) {
			ids = append(ids, b.id)
		}
	}
	return ids
}

// awaitNotices waits until the domains were notified of all confirmed bundles.
func (sim *simulation) awaitNotices() error {
	const patience, every = 30 * time.Minute, time.Second
	watch := baseClient{sim: sim}
	for began := time.Now(); ; {
		ids := sim.work.ledger.unnoticedBundles()
		if len(ids) == 0 {
			return nil
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%d bundles were acknowledged %s ago, but their domain was not notified", len(ids), patience)
		}
		if !watch.pause(every) {
			return nil
		}
	}
}

// requestedLines returns the lines of content that was produced on request, in the form of inline events.
func requestedLines(body []byte) (lines [][]byte) {
	all := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
	for _, id := range all[1:] {
		lines = append(lines, fmt.Appendf(nil, `{"of":%q}`, id))
	}
	return lines
}
