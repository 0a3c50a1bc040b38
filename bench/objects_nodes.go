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

// nodes compares two nodes of one account with one node, in turn. The account is the embedded engine over
// HTTP, with fsync, and has no physics: what the nodes cost each other is all that differs.
func (b *objectBench) nodes(ctx context.Context) error {
	rates := make([][]float64, 2)
	for range pick(b.run, 3, 2) {
		for i := range rates {
			rate, err := b.rateOfNodes(ctx, i+1)
			if err != nil {
				return fmt.Errorf("%d nodes: %w", i+1, err)
			}
			rates[i] = append(rates[i], rate)
		}
	}
	one, two := median(rates[0], asIs), median(rates[1], asIs)
	b.figure("hub", "mixed, to 1 node of an account", one, "1/s", nil)
	b.figure("hub", "mixed, to 2 nodes of an account", two, "1/s", nil)
	b.figure("hub", "mixed, to 2 nodes, of those to 1", two/one, "times", figure.AtLeast(1))
	return nil
}

// rateOfNodes returns how many events a second some nodes store, to which callers report in turn.
func (b *objectBench) rateOfNodes(ctx context.Context, n int) (rate float64, err error) {
	folder, err := os.MkdirTemp("", "messagehub-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	a, err := account.Open(ctx, account.Options{Dir: filepath.Join(folder, "account"), Synced: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	var urls []string
	for i := range n {
		node, err := service.Start(ctx, service.Options{
			Account: a, Database: "hub", Transport: a.Line(), Folder: filepath.Join(folder, fmt.Sprint("node", i)), Receivers: true,
		})
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, node.Stop()) }()
		urls = append(urls, node.URL())
	}
	s := newObjectSource(b.Seed)
	if err := b.fill(ctx, urls[0], s, pick(b.run, 10_000, 2_000)); err != nil {
		return 0, err
	}
	l := s.load(pick(b.run, 20_000, 4_000), minObjectMessage, maxObjectMessage, s.mixed)
	took, err := b.send(ctx, l, objectSenders, urls...)
	return float64(l.events) / took.Seconds(), err
}
