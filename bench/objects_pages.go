package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/load"
)

// objectPage is the number of objects in a page.
const objectPage = 100

// An objectHub is a hub and the number of objects that it stores.
type objectHub struct {
	url     string
	objects int
}

// comparePages lists objects in pages of 100 at two hubs. One hub stores few objects, the other
// many. The rounds alternate, so that other work of this machine slows both hubs equally. It
// measures the heap while the second hub is filled.
func (b *objectBench) comparePages(ctx context.Context) error {
	few, many := objectHub{objects: 10_000}, objectHub{objects: pickSize(b.scenarioRun, 1_000_000, 40_000)}
	return b.runAtHub(ctx, nil, func(url string) error {
		few.url = url
		if err := b.reportNewObjects(ctx, url, newObjectSource(b.Seed), few.objects); err != nil {
			return err
		}
		return b.runAtHub(ctx, nil, func(url string) error {
			many.url = url
			s := newObjectSource(b.Seed)
			if err := b.reportNewObjects(ctx, url, s, few.objects); err != nil {
				return err
			}
			s.releaseMemory()
			before := heapInUse()
			for s.objects < many.objects {
				b.reportProgress(0.8+0.2*float64(s.objects)/float64(many.objects), "report %d objects", many.objects)
				if err := b.reportNewObjects(ctx, url, s, min(few.objects, many.objects-s.objects)); err != nil {
					return err
				}
				s.releaseMemory()
			}
			grown := (float64(heapInUse()) - float64(before)) / (1 << 20)
			b.reportFigure("hub", fmt.Sprintf("heap after %d events, growth over %d", many.objects, few.objects), grown, "MB", figure.AtMost(64))
			for _, order := range []struct {
				name, value string
				p99         float64
			}{{"in order", "key", 150}, {"in any order", "any", 25}} {
				if err := b.measurePagesIn(ctx, order.name, order.value, order.p99, few, many); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// measurePagesIn lists pages in the given order, and reports the times of the requests.
func (b *objectBench) measurePagesIn(ctx context.Context, name, order string, limit float64, hubs ...objectHub) error {
	took, paths := make([]*load.Latencies, len(hubs)), make([][]string, len(hubs))
	for i, h := range hubs {
		took[i] = load.NewLatencies()
		var err error
		if paths[i], err = b.findPagePaths(ctx, h, order); err != nil {
			return err
		}
	}
	rng := rand.New(rand.NewPCG(b.Seed, 5))
	for range pickSize(b.scenarioRun, 1_000, 200) {
		for i, h := range hubs {
			began := time.Now()
			rows, _, err := b.objectClient(h.url).Page(ctx, paths[i][rng.IntN(len(paths[i]))])
			if err != nil {
				return err
			}
			took[i].Record(time.Since(began))
			if rows != objectPage {
				return fmt.Errorf("a page of %d of %d objects has %d", objectPage, h.objects, rows)
			}
		}
	}
	for i, h := range hubs {
		found := took[i].Percentiles()
		page := fmt.Sprintf("page of %d objects %s", h.objects, name)
		b.reportFigure("hub", page+", p50", inMS(found.P50), "ms", nil)
		b.reportFigure("hub", page+", p99", inMS(found.P99), "ms", figure.AtMost(limit))
	}
	few, many := took[0].Percentiles(), took[len(took)-1].Percentiles()
	page := fmt.Sprintf("page of %d objects %s, ratio to %d objects", hubs[1].objects, name, hubs[0].objects)
	b.reportFigure("hub", page+", p50", float64(many.P50)/float64(few.P50), "times", figure.AtMost(1.3))
	b.reportFigure("hub", page+", p99", float64(many.P99)/float64(few.P99), "times", nil)
	return nil
}

// findPagePaths reads the whole list of a hub in large pages. It returns the paths of pages of
// objectPage objects that begin at the same positions as the large pages.
func (b *objectBench) findPagePaths(ctx context.Context, h objectHub, order string) (paths []string, err error) {
	const large = 1_000
	path := fmt.Sprintf("/v1/objects?bucket=%s&order=%s&limit=%d", objectBucket, order, large)
	listed := 0
	for path != "" {
		rows, next, err := b.objectClient(h.url).Page(ctx, path)
		if err != nil {
			return nil, err
		}
		if listed += rows; rows == large {
			place, err := url.Parse(path)
			if err != nil {
				return nil, err
			}
			values := place.Query()
			values.Set("limit", fmt.Sprint(objectPage))
			place.RawQuery = values.Encode()
			paths = append(paths, place.String())
		}
		path = next
	}
	if listed != h.objects {
		return nil, fmt.Errorf("a list of %d objects has %d", h.objects, listed)
	}
	return paths, nil
}
