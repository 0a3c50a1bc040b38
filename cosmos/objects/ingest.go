package objects

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	maxEvents = 24 // limit for the events of one object in a request, so that their changes fit into one batch
	maxNames  = 64 // limit for the objects of a request; see Store.names
)

// A shardRequest contains the events of one call that belong to one shard.
type shardRequest struct {
	objects []*objectEvents
	stored  []*objectEvents // copies of objects with outcomes; set when the request is completed
}

// An objectEvents contains the events of one call for one object, and their outcomes.
type objectEvents struct {
	name     domain.ObjectName
	events   []domain.ObjectEvent
	places   []int // index of each event in the reports of the call
	outcomes []domain.ObjectOutcome
	doubt    bool // value of domain.Object.Doubt after the events
	exists   bool // the object has a current row after the events
	err      error
}

// Ingest implements [repository.Objects].
func (s *Store) Ingest(ctx context.Context, reports []repository.ObjectReport) ([]repository.ObjectResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	results := make([]repository.ObjectResult, len(reports))
	groups, repeats := groupReports(reports)
	byShard := make(map[string][]*shardRequest)
	c := s.client.Begin("ingest")
	for _, g := range groups {
		n, err := s.ensureShards(ctx, c, g.name.Bucket())
		if err != nil {
			g.err = c.Outcome("ingest", err)
			g.copyTo(results)
			continue
		}
		key := shardKey(g.name.Bucket(), shardOf(g.name.Key(), n))
		byShard[key] = s.addToRequests(byShard[key], g)
	}
	var wait sync.WaitGroup
	for key, requests := range byShard {
		wait.Go(func() {
			for _, r := range requests {
				stored := r.objects
				err := s.shard(key).leader.Do(ctx, r)
				if err == nil {
					stored = r.stored
				}
				for _, g := range stored {
					if err != nil {
						g.err = err
					}
					g.copyTo(results)
				}
			}
		})
	}
	wait.Wait()
	for place, first := range repeats {
		if results[place] = results[first]; results[place].Err == nil {
			results[place].Outcome = results[first].Outcome.OfRepeat()
		}
	}
	return results, nil
}

// copyTo copies the outcomes of a group to the results of its call.
func (g *objectEvents) copyTo(results []repository.ObjectResult) {
	for i, place := range g.places {
		if g.err != nil {
			results[place].Err = g.err
		} else {
			r := &results[place]
			r.Outcome, r.Doubt, r.Exists = g.outcomes[i], g.doubt, g.exists
		}
	}
}

// groupReports groups the events by object, up to maxEvents in a group. If the call contains an event
// twice, repeats maps the index of the second occurrence to the index of the first.
func groupReports(reports []repository.ObjectReport) (groups []*objectEvents, repeats map[int]int) {
	type identity struct {
		name domain.ObjectName
		id   domain.ObjectRowID
	}
	first := make(map[identity]int, len(reports))
	repeats = make(map[int]int)
	last := make(map[domain.ObjectName]*objectEvents)
	for i := range reports {
		r := &reports[i]
		id := identity{r.Name, r.ID()}
		if before, has := first[id]; has {
			repeats[i] = before
			continue
		}
		first[id] = i
		g := last[r.Name]
		if g == nil || len(g.events) == maxEvents {
			g = &objectEvents{name: r.Name}
			last[r.Name] = g
			groups = append(groups, g)
		}
		g.events, g.places = append(g.events, r.ObjectEvent), append(g.places, i)
	}
	return groups, repeats
}

// addToRequests adds a group to the last request. If the last request is full, or has earlier events of
// the same object, the group is added to a new request.
func (s *Store) addToRequests(requests []*shardRequest, g *objectEvents) []*shardRequest {
	if n := len(requests); n > 0 {
		last := requests[n-1]
		isSame := func(other *objectEvents) bool { return other.name == g.name }
		if len(last.objects) < s.names && !slices.ContainsFunc(last.objects, isSame) {
			last.objects = append(last.objects, g)
			return requests
		}
	}
	return append(requests, &shardRequest{objects: []*objectEvents{g}})
}

// groupsByName returns the sorted names of the objects, and the groups of each object.
func groupsByName(groups []*objectEvents) ([]domain.ObjectName, map[domain.ObjectName][]*objectEvents) {
	of := make(map[domain.ObjectName][]*objectEvents)
	for _, g := range groups {
		of[g.name] = append(of[g.name], g)
	}
	return slices.SortedFunc(maps.Keys(of), domain.CompareObjectNames), of
}
