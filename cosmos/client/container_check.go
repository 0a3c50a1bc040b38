package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/domain"
)

// A ContainerError describes a property of a container that does not meet the needs of the hub.
type ContainerError struct {
	Container string
	Text      string // what is wrong, and the consequence

	// Warning reports that the hub works in spite of the mismatch, at a cost that Text describes.
	Warning bool

	// isWiderIndex reports that the container has more indexes than it needs. Provision
	// removes them only on request.
	isWiderIndex bool

	// Repairable reports whether Provision can correct the property in place. Otherwise the container
	// must be created again.
	Repairable bool

	// Remedy is the advice for a mismatch that is not repairable.
	Remedy string
}

func (m *ContainerError) Error() string {
	switch {
	case m.Warning:
		return fmt.Sprintf("container %s: %s", m.Container, m.Text)
	case m.Repairable:
		return fmt.Sprintf("container %s: %s; correct it with messagehub provision", m.Container, m.Text)
	}
	return fmt.Sprintf("container %s: %s; this cannot be changed in place: %s", m.Container, m.Text, m.Remedy)
}

// compare returns the differences between a container and what the hub needs.
func (c *ContainerSpec) compare(s *containerState) []*ContainerError {
	var found []*ContainerError
	report := func(m ContainerError, format string, args ...any) {
		m.Container, m.Text, m.Remedy = c.Name, fmt.Sprintf(format, args...), c.Remedy
		found = append(found, &m)
	}
	key := &s.PartitionKey
	switch {
	case len(key.Paths) != 1 || strings.EqualFold(key.Kind, string(azcosmos.PartitionKeyKindMultiHash)):
		report(ContainerError{}, "its partition key is hierarchical (%s), want %s alone", strings.Join(key.Paths, ", "), c.PartitionKey)
	case unquotePath(key.Paths[0]) != c.PartitionKey:
		report(ContainerError{}, "its partition key is %s, want %s", key.Paths[0], c.PartitionKey)
	case key.Version < 2 && c.KeyBytes > keyBytesOfVersion1:
		report(ContainerError{Warning: true}, "its partition key is hashed by version 1, which takes values of up to %d bytes; the hub's may have %d, and events for names as long as that are refused", keyBytesOfVersion1, c.KeyBytes)
	}
	for _, unique := range s.UniqueKeys.Keys {
		report(ContainerError{}, "it has a unique key (%s), want none", strings.Join(unique.Paths, ", "))
	}
	switch ttl := s.DefaultTTL; {
	case ttl != nil && *ttl != -1:
		report(ContainerError{Repairable: true}, "its default TTL is %d, which deletes what the hub stores after %d seconds; want %s", *ttl, *ttl, c.DefaultTTL())
	case ttl == nil && c.Expires:
		report(ContainerError{Repairable: true}, "its default TTL is not set, so that documents never expire; want -1")
	}
	if !s.Indexing.isConsistent() {
		report(ContainerError{Repairable: true}, "its indexing mode is %s, want consistent with %s", s.Indexing.describeMode(), strings.Join(c.IndexPaths(), ", "))
		return found
	}
	if !s.Indexing.isIndexed(c.keyPath()) {
		report(ContainerError{Warning: true, Repairable: true}, "its indexing policy does not index the partition key, %s: a query in one partition may cost a scan of others; messagehub provision adds it, in place and while hubs run", c.keyPath())
	}
	for _, p := range c.Index {
		switch {
		case s.Indexing.isIndexed(p.Path):
		case p.IsOptional:
			report(ContainerError{Warning: true, Repairable: true}, "its indexing policy does not index %s; without it, %s; messagehub provision adds it, in place and while hubs run", p.Path, p.Use)
		default:
			report(ContainerError{Repairable: true}, "its indexing policy does not index %s; without it, %s", p.Path, p.Use)
		}
	}
	if more := s.Indexing.extraPaths(c.IndexPaths()); len(more) > 0 {
		report(ContainerError{Warning: true, Repairable: true, isWiderIndex: true}, "its indexing policy also indexes %s, which no query of the hub needs: %s; messagehub provision --narrow-index removes it", strings.Join(more, ", "), c.WiderIndex)
	}
	return found
}

// keyBytesOfVersion1 is the maximum length of a partition key value that is hashed by version 1.
const keyBytesOfVersion1 = 101

// describeMode names the indexing mode.
func (p *indexingPolicy) describeMode() string {
	if p.Automatic != nil && !*p.Automatic && !strings.EqualFold(p.Mode, "none") {
		return "manual (automatic: false)"
	}
	return strings.ToLower(p.Mode)
}

// readContainer returns the properties of a container. Its error contains advice for the operator.
func (c *Call) readContainer(ctx context.Context, name string) (*containerState, error) {
	container, err := c.client.db.Container(name)
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "container %s: %w", name, err)
	}
	for {
		began := time.Now()
		attempt, cancel := context.WithTimeout(ctx, callTimeout)
		resp, err := container.Read(attempt, nil)
		cancel()
		c.client.metrics.addRequest(ctx, c.name, name, err, resp.RequestCharge, time.Since(began))
		if err == nil {
			return parseContainer(name, &resp)
		}
		if f := FailureOf(err); f.isRetriable() && ctx.Err() == nil && c.Pause(ctx, f.after) {
			continue
		}
		return nil, c.client.db.explainRead(name, err)
	}
}

func parseContainer(name string, resp *azcosmos.ContainerResponse) (*containerState, error) {
	raw, err := runtime.Payload(resp.RawResponse)
	s := &containerState{raw: raw}
	if err == nil {
		err = json.Unmarshal(raw, s)
	}
	if err != nil {
		return nil, domain.Errorf(domain.Unavailable, "read the properties of container %s: %w", name, err)
	}
	return s, nil
}

// errContainerMissing reports that a container, or its database, does not exist.
var errContainerMissing = errors.New("it does not exist")

// explainRead adds advice to err, with which a read of the properties of a container failed.
func (db *Database) explainRead(name string, err error) error {
	switch {
	case StatusOf(err) == http.StatusNotFound && !FailureOf(err).behind: // not missing if the replica is only stale
		return domain.Errorf(domain.Unavailable, "container %s of database %s: %w; create it with messagehub provision", name, db.name, errContainerMissing)
	case StatusOf(err) == http.StatusUnauthorized:
		return domain.Errorf(domain.Unavailable, "container %s of database %s: the account refuses the credential; check cosmos.key, or the identity that stands for it: %w",
			name, db.name, FailureOf(err))
	case StatusOf(err) == http.StatusForbidden:
		return domain.Errorf(domain.Unavailable, "container %s of database %s: the credential may not read its properties; "+
			"give it a role with the data action Microsoft.DocumentDB/databaseAccounts/readMetadata, such as Cosmos DB Built-in Data Contributor, and check the firewall of the account: %w",
			name, db.name, FailureOf(err))
	}
	return Classify("read the properties of container "+name, err)
}

// CheckContainers reads the properties of every container and returns all faults: a *ContainerError for
// each mismatch, and errors for containers that are missing or cannot be read. It logs a warning for a
// mismatch that only costs more. Every node calls it before it serves.
func (c *Client) CheckContainers(ctx context.Context) error {
	w := &c.containers
	if err := w.acquireTurn(ctx); err != nil {
		return domain.Errorf(domain.Unavailable, "%s: %w", checkContainers, err)
	}
	defer w.releaseTurn()
	w.rids = nil
	w.checked = c.opts.Clock()
	err := w.checkAll(ctx, c.Begin(checkContainers), func(m *ContainerError) {
		c.opts.Logger.Warn("container differs from what the hub needs, but works", "container", m.Container, "problem", m.Text)
	})
	w.setFault(err)
	return err
}

// ContainersFault returns the known fault of the containers, or nil. It reads the properties of the
// containers if the last result is older than maxContainerAge. If a fault is known, or a call failed in
// a way that a changed container would explain, it reads them after maxSuspectAge. An unreachable
// account is not a fault of its containers. One caller reads at a time. If ctx ends while another caller
// reads, the result is the fault that was known before.
func (c *Client) ContainersFault(ctx context.Context) error {
	w := &c.containers
	if w.acquireTurn(ctx) != nil {
		return w.knownFault()
	}
	defer w.releaseTurn()
	return c.refreshContainers(ctx)
}

// refreshContainers reads the properties of the containers if the last result is too old, and returns
// the known fault. The caller must hold the turn of the containerWatch.
func (c *Client) refreshContainers(ctx context.Context) error {
	w := &c.containers
	now := c.opts.Clock()
	if w.isCurrent(now) {
		return w.knownFault()
	}
	call := c.Begin(checkContainers)
	call.retries = 0 // no retries, because a later check reads again
	err := w.checkAll(ctx, call, func(*ContainerError) {})
	w.checked = now
	if w.suspect.Load() || err != nil {
		w.suspected = now
	}
	if err == nil || IsContainerFault(err) {
		w.setFault(err)
		w.suspect.Store(false)
	}
	return w.knownFault()
}

// suspectContainers checks the containers after a call failed in a way that a changed container would
// explain, and returns their known fault. It does not wait while another caller reads.
func (c *Client) suspectContainers(ctx context.Context) error {
	w := &c.containers
	w.suspect.Store(true)
	if !w.tryAcquire() {
		return w.knownFault()
	}
	defer w.releaseTurn()
	return c.refreshContainers(ctx)
}

// checkContainers is the name of the call that reads the properties of containers.
const checkContainers = "check containers"

// Time for which the properties of the containers are cached.
const (
	maxContainerAge = 5 * time.Minute
	maxSuspectAge   = 10 * time.Second
)

// A containerWatch caches the result of checks of the containers. It is safe for concurrent use.
type containerWatch struct {
	suspect atomic.Bool           // a call has failed in a way that a changed container would explain
	fault   atomic.Pointer[error] // result of the last check; nil: no check yet, or no fault

	// turn is full while a caller reads the properties. It is not a mutex, because a waiting caller must
	// stop when its context ends.
	turn chan struct{}

	// Only the caller that holds turn may use these fields.
	checked   time.Time         // time of the last read of the properties; zero: never
	suspected time.Time         // time of the last read that was caused by a failed call or a known fault
	rids      map[string]string // resource ids of the containers when the hub started, by name
}

func (w *containerWatch) acquireTurn(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *containerWatch) tryAcquire() bool {
	select {
	case w.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

func (w *containerWatch) releaseTurn() { <-w.turn }

func (w *containerWatch) setFault(err error) { w.fault.Store(&err) }

func (w *containerWatch) knownFault() error {
	if fault := w.fault.Load(); fault != nil {
		return *fault
	}
	return nil
}

func (w *containerWatch) isCurrent(now time.Time) bool {
	if age := now.Sub(w.suspected); (w.suspect.Load() || w.knownFault() != nil) && (age < 0 || age >= maxSuspectAge) {
		return false
	}
	age := now.Sub(w.checked)
	return age >= 0 && age < maxContainerAge
}

// IsContainerFault reports whether err is a fault of the containers or of the regions of their account,
// rather than of the connection to the account.
func IsContainerFault(err error) bool {
	_, mismatch := errors.AsType[*ContainerError](err)
	return mismatch || errors.Is(err, errContainerMissing) || errors.Is(err, errContainerReplaced) || errors.Is(err, errSeveralWriteRegions)
}

// IsContainerMissing reports whether err means that a container does not exist.
func IsContainerMissing(err error) bool {
	return err != nil && (errors.Is(err, errContainerMissing) || FailureOf(err).missing)
}

// errContainerReplaced reports that a container was deleted and created again since the hub started.
var errContainerReplaced = errors.New("it was deleted and created again while the hub ran; restart all hubs")

// checkAll reads the containers one after the other and returns all faults. The caller must hold w.turn.
func (w *containerWatch) checkAll(ctx context.Context, c *Call, warn func(*ContainerError)) error {
	var faults []error
	rids := make(map[string]string)
	specs := c.client.opts.Containers
	for i := range specs {
		spec := &specs[i]
		state, err := c.readContainer(ctx, spec.Name)
		if err != nil && !errors.Is(err, errContainerMissing) {
			if len(faults) == 0 {
				faults = append(faults, err)
			}
			break // the other containers would fail in the same way
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		for _, m := range spec.compare(state) {
			if m.Warning {
				warn(m)
			} else {
				faults = append(faults, m)
			}
		}
		rids[spec.Name] = state.RID
		if before, ok := w.rids[spec.Name]; ok && before != state.RID {
			faults = append(faults, fmt.Errorf("container %s: %w", spec.Name, errContainerReplaced))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return domain.Errorf(domain.Unavailable, "%w", err)
	}
	if w.rids == nil {
		w.rids = rids
	}
	return nil
}
