package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A domainSimulation is a run of messagehub domain.
type domainSimulation struct {
	p *process
	*domainCommand
	recipients []string
	reason     domainclient.Reason
	size       int64 // size of a bundle's content in bytes; 0 if it depends on the weight
	place      busPlace
	container  *container.Client

	domain   *domainclient.Client
	requests atomic.Int64

	printing                        sync.Mutex
	sent, answered, failed, noticed int
}

// run simulates a domain until ctx ends. Concurrently, it sends events, replies
// to content requests, and receives notices.
func (s *domainSimulation) run(ctx context.Context) (err error) {
	if err := s.place.checkReachable(ctx); err != nil {
		return err
	}
	if err := reachExchange(ctx, s.container); err != nil {
		return err
	}
	options := domainclient.Options{
		Origin: s.name, Connect: s.place.connect, Exchange: s.container,
		EventsPerMessage: s.batch, Answered: s.tellAnswer, Logger: slog.New(slog.NewTextHandler(s.p.err, &slog.HandlerOptions{ReplaceAttr: redactLogError})),
	}
	if s.batch > 1 {
		options.Form = domainclient.JSON
	}
	if s.domain, err = domainclient.New(options); err != nil {
		return err
	}
	fmt.Fprintf(s.p.out, "domain %s on %s; Ctrl-C ends it\n", s.name, s.place.name)
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return s.domain.Serve(running, s.makeContent) })
	g.Go(func() error { return s.domain.Notices(running, s.handleNotice) })
	g.Go(func() error { return s.sendAll(running) })
	err = g.Wait()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = s.domain.Close(closing) // an error loses nothing, because only events confirmed by the bus are counted
	fmt.Fprintf(s.p.out, "%d sent, %d answered, %d failed, %d notices\n", s.sent, s.answered, s.failed, s.noticed)
	switch refused, _ := errors.AsType[*azservicebus.Error](err); {
	case ctx.Err() != nil:
		return nil // a cancelled context is not an error
	case refused != nil && refused.Code == azservicebus.CodeNotFound:
		return fmt.Errorf("the hub has no queues for the domain %s; use --name with one that it knows, or add it to its setting domains (%w)", s.name, err)
	case refused != nil && refused.Code == azservicebus.CodeUnauthorizedAccess:
		return fmt.Errorf("the bus refused the credentials; check the key in --servicebus or %s (%w)", busVariable, err)
	}
	return err
}

// printLine prints a line. It is safe for concurrent use.
func (s *domainSimulation) printLine(format string, args ...any) {
	fmt.Fprintf(s.p.out, format+"\n", args...)
}

// sendAll sends the events, each to the next actor in turn.
func (s *domainSimulation) sendAll(ctx context.Context) error {
	began, tick := time.Now(), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for from := 0; from < s.send; {
		to := min(s.send, from+eventsAtOnce)
		if s.rate > 0 {
			to = min(to, int(s.rate*time.Since(began).Seconds())+1)
		}
		if to > from {
			taken, err := s.domain.Send(ctx, s.newEvents(from, to))
			s.printing.Lock()
			s.sent += taken
			s.printing.Unlock()
			if err != nil {
				return err
			}
			from = to
		}
		if s.rate == 0 {
			continue
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.send > 0 {
		s.printing.Lock()
		defer s.printing.Unlock()
		s.printLine("sent %d events in %s", s.sent, time.Since(began).Round(time.Millisecond))
	}
	return nil
}

func (s *domainSimulation) newEvents(from, to int) []domainclient.Event {
	contentType, documentType := s.eventKind()
	events := make([]domainclient.Event, 0, to-from)
	for n := from; n < to; n++ {
		events = append(events, domainclient.Event{
			ID: uuid.New(), Recipient: s.recipients[n%len(s.recipients)],
			ContentType: contentType, DocumentType: documentType, SupportsBundling: true, Weight: s.weight,
		})
	}
	return events
}

// eventKind returns the content type and the document type of the simulated
// events.
func (s *domainSimulation) eventKind() (contentType, documentType string) {
	if s.contentType != "" {
		return s.contentType, s.contentType
	}
	i := slices.IndexFunc(energymarket.Kinds, func(k energymarket.Kind) bool { return k.Origin == s.name })
	if i < 0 {
		return s.name + "Data", s.name + "Data"
	}
	return energymarket.Kinds[i].ContentType, energymarket.Kinds[i].DocumentTypes[0]
}

// makeContent returns the content of a bundle, or an error if the flags request
// one.
func (s *domainSimulation) makeContent(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
	n := s.requests.Add(1)
	if s.delay > 0 && clock.Sleep(ctx, s.delay) != nil {
		return nil, ctx.Err()
	}
	if s.failEvery > 0 && n%int64(s.failEvery) == 0 || s.fail > 0 && rand.Float64() < s.fail {
		return nil, &domainclient.Failure{Reason: s.reason, Description: "this domain was told to fail"}
	}
	ids, err := r.EventIDs(ctx)
	if err != nil {
		return nil, err
	}
	size, format := s.size, r.Format
	if size == 0 {
		size = int64(len(ids)) * s.weight << 10
	}
	if s.format != "" {
		format = domainclient.Format(s.format)
	}
	return newContent(r, format, ids, size), nil
}

func (s *domainSimulation) tellAnswer(a domainclient.Answer) {
	s.printing.Lock()
	defer s.printing.Unlock()
	took := a.Took.Round(time.Millisecond)
	if a.Failure != nil {
		s.failed++
		if !s.quiet {
			s.printLine("failed %s after %s: %s", a.Request.IdempotencyID, took, a.Failure)
		}
		return
	}
	s.answered++
	if !s.quiet {
		s.printLine("answered %s in %s: %d bytes of %s", a.Request.IdempotencyID, took, a.Bytes, a.Request.ContentType)
	}
}

func (s *domainSimulation) handleNotice(_ context.Context, n *domainclient.Notice) error {
	s.printing.Lock()
	defer s.printing.Unlock()
	s.noticed++
	if s.notices {
		s.printLine("notice: %s dequeued %s", n.Recipient, n.ID)
	}
	return nil
}
