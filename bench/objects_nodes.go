package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/service"
)

// compareNodes compares two nodes of one account with a single node, in alternating rounds, with
// the same callers. The account is the embedded engine over HTTP, with fsync and without physics.
// All processes share the cores of this machine, so the comparison shows the cost of a second node:
// each node combines the events of only half of the callers, and the writes of the two nodes may
// conflict. The number of requests per event shows how often writes conflict.
func (b *objectBench) compareNodes(ctx context.Context) error {
	var rates, requests [2][]float64
	for range pickSize(b.scenarioRun, 3, 2) {
		for i := range rates {
			rate, perEvent, err := b.measureNodes(ctx, i+1)
			if err != nil {
				return fmt.Errorf("%d nodes: %w", i+1, err)
			}
			rates[i], requests[i] = append(rates[i], rate), append(requests[i], perEvent)
		}
	}
	names := [...]string{"mixed, messages to 1 node", "mixed, messages to 2 nodes"}
	for i, name := range names {
		b.reportFigure("hub", name, median(rates[i], asIs), "1/s", nil)
		b.reportFigure("hub", name+", requests", median(requests[i], asIs), "requests/event", nil)
	}
	b.reportFigure("hub", names[1]+", ratio to 1 node", median(rates[1], asIs)/median(rates[0], asIs), "times", figure.AtLeast(1))
	return nil
}

// measureNodes returns the number of events per second that n nodes store, and the number of their
// requests per event. Callers report to the nodes in rotation.
func (b *objectBench) measureNodes(ctx context.Context, n int) (rate, requests float64, err error) {
	folder, err := os.MkdirTemp("", "messagehub-bench-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	a, err := account.Open(ctx, account.Options{Dir: filepath.Join(folder, "account"), Synced: true})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	line := a.Line()
	var urls []string
	for i := range n {
		node, err := service.Start(ctx, service.Options{
			Account: a, Database: "hub", Transport: line, Folder: filepath.Join(folder, fmt.Sprint("node", i)), Receivers: true,
		})
		if err != nil {
			return 0, 0, err
		}
		defer func() { err = errors.Join(err, node.Stop()) }()
		urls = append(urls, node.URL())
	}
	s := newObjectSource(b.Seed)
	// With few objects, most writes of a node would conflict with a write of the second node.
	if err := b.reportNewObjects(ctx, urls[0], s, pickSize(b.scenarioRun, 50_000, 5_000)); err != nil {
		return 0, 0, err
	}
	l := s.newLoad(pickSize(b.scenarioRun, 20_000, 4_000), minObjectMessage, maxObjectMessage, s.mixedEvent)
	before := line.Count()
	took, err := b.sendLoad(ctx, l, objectCallers, urls...)
	return float64(l.events) / took.Seconds(), float64(line.Count().Since(before).Requests) / float64(l.events), err
}
