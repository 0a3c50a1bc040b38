package delivery

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The times of a membership. A signal reaches the other nodes within signalEvery and checkEvery.
const (
	beatEvery   = 2 * time.Second
	signalEvery = 250 * time.Millisecond // interval of the beats of a node that has signals
	checkEvery  = 500 * time.Millisecond // interval of looks while another node is alive
	lapseAfter  = 6 * time.Second        // no call begins when the last confirmed beat is older
	leaveWithin = 5 * time.Second
)

// A membership shares the shards among the engines of all nodes.
type membership struct {
	engine *Engine
	self   string
	kick   chan struct{} // has an element while there are new signals

	// The following fields belong to the goroutine of run.
	beat      int64
	begun     time.Time // when the last stored beat began
	looked    time.Time // when the first look succeeded; zero: no look has succeeded
	seen      map[string]*nodeSighting
	last      repository.Assignment // the newest assignment that was read
	older     time.Time             // since when reads return an assignment older than last; zero: the last read did not
	isShared  bool                  // another node is alive
	failures  int                   // consecutive failed rounds
	blind     time.Time             // when the first failed look after the last successful one began; zero: none failed
	releasing map[int]time.Time     // when the node began to release the cursors of a shard

	mu        sync.Mutex
	assigned  [repository.ShardCount]bool // shards that the last read assignment gives to the node
	owned     [repository.ShardCount]bool // assigned shards that are not being released
	confirmed time.Time                   // when the last beat began that was stored before a read of the assignment
	asked     map[int]time.Time           // when the node was asked about a cursor of a shard
	orphaned  []int                       // shards whose owner has died, and that no node has taken
	awaiting  awaiting
	signals   []repository.Signal
	signalled int64
	sent      int64 // number of signals that were stored
}

func newMembership(e *Engine) *membership {
	return &membership{
		engine: e, self: e.opts.Incarnation, kick: make(chan struct{}, 1),
		seen: make(map[string]*nodeSighting), releasing: make(map[int]time.Time), asked: make(map[int]time.Time),
	}
}

// hasShard reports whether the node serves a shard.
func (m *membership) hasShard(shard int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owned[shard]
}

// mayCall reports whether it is certain that the node owns a shard. After a pause of the
// process it is not certain until a beat was stored and the assignment was read.
func (m *membership) mayCall(shard int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owned[shard] && time.Since(m.confirmed) < lapseAfter
}

// isAssigned reports whether a shard is assigned to the node, by the last assignment that was
// read.
func (m *membership) isAssigned(shard int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.assigned[shard]
}

// mayLoad reports whether cursors of a shard may be loaded. They may if it is certain that the
// shard is assigned to this node, even while the node releases it.
func (m *membership) mayLoad(shard int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.assigned[shard] && time.Since(m.confirmed) < lapseAfter
}

// sendSignal notifies the other nodes of a change that this node has stored.
func (m *membership) sendSignal(s repository.Signal) {
	m.mu.Lock()
	if unsent := m.signals[len(m.signals)-int(min(m.signalled-m.sent, int64(len(m.signals)))):]; slices.Contains(unsent, s) {
		m.mu.Unlock()
		return
	}
	if len(m.signals) == repository.MaxSignals {
		m.signals = slices.Delete(m.signals, 0, 1)
	}
	m.signals = append(m.signals, s)
	m.signalled++
	m.mu.Unlock()
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// run stores beats, and takes and releases shards, until ctx ends.
func (m *membership) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-m.kick:
			if !m.isShared {
				continue // the next beat includes the signals
			}
			if since := time.Since(m.begun); since < signalEvery {
				timer.Reset(signalEvery - since)
				continue
			}
		}
		if err := m.runRound(ctx); err != nil {
			m.failures++
			m.engine.logWarning(ctx, "share the shards with other nodes", err)
			timer.Reset(min(m.engine.opts.Backoff(m.failures), beatEvery))
			continue
		}
		m.failures = 0
		timer.Reset(m.timeToNextRound())
	}
}

// timeToNextRound returns the time until the next round.
func (m *membership) timeToNextRound() time.Duration {
	if !m.isShared {
		return beatEvery
	}
	wait := checkEvery
	if m.hasUnsent() {
		wait = min(wait, max(signalEvery-time.Since(m.begun), 0))
	}
	return wait
}

func (m *membership) hasUnsent() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.signalled > m.sent || len(m.awaiting.unsent) > 0
}

// runRound stores a beat if one is due, and reads the state of the other nodes.
func (m *membership) runRound(ctx context.Context) error {
	if m.isBeatDue() {
		if err := m.storeBeat(ctx); err != nil {
			return err
		}
	}
	m.checkAnnounced()
	for range maxAssigns {
		again, err := m.readMembers(ctx)
		if !again || err != nil {
			return err
		}
	}
	return nil
}

// isBeatDue reports whether a beat has to be stored. After lapseAfter without a successful look, no
// beat is due: the node makes no calls, and other nodes have to take its shards.
func (m *membership) isBeatDue() bool {
	if !m.blind.IsZero() && time.Since(m.blind) >= lapseAfter {
		return false
	}
	since := time.Since(m.begun)
	return m.begun.IsZero() || since >= beatEvery-checkEvery/2 || m.isShared && m.hasUnsent() && since >= signalEvery
}

// maxAssigns limits the attempts of a round to store an assignment while other nodes replace it.
// The next round continues.
const maxAssigns = 3

// storeBeat stores a beat.
func (m *membership) storeBeat(ctx context.Context) error {
	began := time.Now()
	m.beat++
	m.mu.Lock()
	n := repository.Node{Incarnation: m.self, Beat: m.beat, Signals: slices.Clone(m.signals), Signalled: m.signalled}
	announced := len(m.awaiting.unsent)
	m.mu.Unlock()
	n.Awaits = m.engine.awaitedStreams()
	if err := m.engine.Nodes.Beat(ctx, n); err != nil {
		return err
	}
	m.begun = began
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = n.Signalled
	m.awaiting.markAnnounced(announced, m.isShared)
	return nil
}

// readMembers reads the beats of the other nodes and the assignment, and takes and releases
// shards. again is true if another node has replaced the assignment.
func (m *membership) readMembers(ctx context.Context) (again bool, err error) {
	now := time.Now() // before the reads, however long they take
	nodes, assignment, err := m.engine.Nodes.Nodes(ctx)
	if err != nil {
		if m.blind.IsZero() {
			m.blind = now
		}
		return false, err
	}
	m.blind = time.Time{}
	if m.looked.IsZero() {
		m.looked = time.Now()
	}
	assignment = m.newestAssignment(now, assignment)
	m.observeNodes(now, time.Now(), nodes, &assignment)
	m.followAssignment(&assignment)
	m.noteOrphaned(now, &assignment)
	return m.reassignShards(ctx, now, assignment)
}

// newestAssignment returns the assignment to follow: the assignment read, or the last one if read
// is older or damaged. Reads of an older assignment count as stale for deadAfter. After that, the
// stored assignment was removed or restored by hand.
func (m *membership) newestAssignment(now time.Time, read repository.Assignment) repository.Assignment {
	if read.Damage != nil {
		kept := m.last
		kept.Damage = read.Damage
		return kept
	}
	if read.Version >= m.last.Version {
		m.older = time.Time{}
	} else if m.older.IsZero() {
		m.older = now
	}
	if !m.older.IsZero() && now.Sub(m.older) < deadAfter {
		return m.last
	}
	m.last, m.older = read, time.Time{}
	return read
}

// observeNodes records which nodes have stored new beats, and handles their signals. The data
// was read between from and to.
func (m *membership) observeNodes(from, to time.Time, nodes []repository.Node, assignment *repository.Assignment) {
	for _, s := range m.seen {
		s.isStored = false
	}
	var others repository.StreamSet
	for i := range nodes {
		n := &nodes[i]
		if n.Incarnation == m.self {
			continue
		}
		s := m.seen[n.Incarnation]
		if s == nil {
			s = &nodeSighting{}
			m.seen[n.Incarnation] = s
		}
		s.isStored = true
		if s.isAlive(from) || n.Beat > s.beat {
			others.AddAll(n.Awaits)
		}
		if n.Beat > s.beat {
			s.beat, s.moved = n.Beat, to
		}
		if n.Signalled > s.signalled {
			m.engine.handleSignals(n, s.signalled)
			s.signalled = n.Signalled
		}
	}
	m.mu.Lock()
	m.awaiting.isKnown, m.awaiting.others = true, others
	m.mu.Unlock()
	for _, owner := range assignment.Owners {
		if owner != "" && owner != m.self && m.seen[owner] == nil {
			m.seen[owner] = &nodeSighting{moved: to} // the owner's document does not exist, or is not visible yet
		}
	}
	m.isShared = false
	for incarnation, s := range m.seen {
		m.isShared = m.isShared || s.isStored && s.isAlive(from)
		if !s.isStored && !s.isAlive(from) && !slices.Contains(assignment.Owners[:], incarnation) {
			delete(m.seen, incarnation)
		}
	}
}

// followAssignment serves the shards that the assignment gives to the node, and no others.
func (m *membership) followAssignment(assignment *repository.Assignment) {
	var gained, lost []int
	m.mu.Lock()
	hadLapsed := time.Since(m.confirmed) >= lapseAfter
	m.confirmed = m.begun
	for shard, owner := range assignment.Owners {
		owns := owner == m.self
		m.assigned[shard] = owns
		if !owns {
			delete(m.releasing, shard)
		} else if _, isReleasing := m.releasing[shard]; isReleasing {
			owns = false
		}
		switch {
		case owns && !m.owned[shard]:
			gained = append(gained, shard)
		case !owns && m.owned[shard]:
			lost = append(lost, shard)
		}
		m.owned[shard] = owns
	}
	m.mu.Unlock()
	m.engine.shedShards(lost)
	if len(gained) > 0 {
		m.engine.spawn(func() { m.engine.serveShards(gained) })
	}
	if hadLapsed {
		m.engine.wakeAll()
	}
}

// reassignShards takes shards without an owner, and releases shards beyond the quota of the
// node once their cursors are released.
func (m *membership) reassignShards(ctx context.Context, now time.Time, assignment repository.Assignment) (again bool, err error) {
	if m.engine.isStopping() {
		return false, nil
	}
	alive := []string{m.self}
	for incarnation, s := range m.seen {
		if s.isStored && s.isAlive(now) {
			alive = append(alive, incarnation)
		}
	}
	a := allocateShards(m.self, alive, &assignment.Owners, func(owner string) bool { return m.canReplace(owner, now) })
	next := assignment
	next.Damage = nil
	for _, shard := range a.free {
		next.Owners[shard] = ""
	}
	for _, shard := range slices.Concat(a.take, m.requestedShards(now, &assignment)) {
		next.Owners[shard] = m.self
	}
	m.beginRelease(a.release)
	for shard, since := range m.releasing {
		if !m.engine.isServing(shard) || time.Since(since) > m.engine.opts.Timeout+m.engine.opts.Overhead {
			next.Owners[shard] = ""
		}
	}
	if next.Owners == assignment.Owners && assignment.Damage == nil {
		return false, nil
	}
	err = m.engine.Nodes.Assign(ctx, next)
	switch {
	case domain.KindOf(err) == domain.Conflict:
		err = nil
	case err == nil && assignment.Damage != nil:
		m.engine.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "the assignment of shards could not be read, and was replaced",
			slog.String("error", assignment.Damage.Error()))
	}
	return err == nil, err
}

// beginRelease begins to release the cursors of shards.
func (m *membership) beginRelease(shards []int) {
	var begun []int
	m.mu.Lock()
	for _, shard := range shards {
		if _, isReleasing := m.releasing[shard]; !isReleasing {
			m.releasing[shard] = time.Now()
			m.owned[shard] = false
			begun = append(begun, shard)
		}
	}
	m.mu.Unlock()
	m.engine.shedShards(begun)
}

// leaveCluster releases all shards of the node, and removes its document.
func (m *membership) leaveCluster(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	err := m.giveBack(ctx)
	for range maxAssigns {
		if domain.KindOf(err) != domain.Conflict {
			break
		}
		err = m.giveBack(ctx)
	}
	if err != nil {
		m.engine.logWarning(ctx, "release the shards", err)
		return
	}
	if err := m.engine.Nodes.Leave(ctx, m.self); err != nil {
		m.engine.logWarning(ctx, "remove the node", err)
	}
}

func (m *membership) giveBack(ctx context.Context) error {
	_, assignment, err := m.engine.Nodes.Nodes(ctx)
	if err != nil {
		return err
	}
	next := assignment
	for shard, owner := range next.Owners {
		if owner == m.self {
			next.Owners[shard] = ""
		}
	}
	if next.Owners == assignment.Owners {
		return nil
	}
	return m.engine.Nodes.Assign(ctx, next)
}
