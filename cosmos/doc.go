// Package cosmos keeps events and bundles in Azure Cosmos DB, or in anything
// that azcosmos can talk to.
//
// Cosmos changes several documents together only within one logical partition,
// and one partition is too slow to read a full bundle from in time. So events
// are spread over drawers, partitions of at most 10,000 events each, and the few
// decisions about a recipient are made by conditional writes of two documents:
// its head says what was received, a gate for each group what was acknowledged.
// Everything else is either written once and never changed, or a hint.
//
// # Documents
//
//	container  partition                     document
//	catalog    recipient                     head     what was received: numbers reserved and visible, the Save in flight,
//	                                                  and for each cabinet its last drawer and how far that is filled
//	catalog    recipient|origin              entry    hint: a drawer with unacknowledged events, and where they begin
//	cabinet    recipient|origin|contentType  drawer   ordinal, count, sealed or not; and a hint, the position
//	cabinet    id of the drawer              page     a run of events, written once
//	cabinet    id of the drawer              filter   which ids a sealed drawer may hold
//	bundles    recipient                     gate     one for each group: the open bundle, and for each cabinet the place behind
//	                                                  the last acknowledged event
//	bundles    recipient                     bundle   where its events lie (six runs of slots at most), open or closed; and of
//	                                                  one on request, what has come of asking its domain
//	bundles    recipient                     notice   a domain is still to be told that a bundle is in safe hands
//	bundles    recipient                     record   what an operator has done, and why
//
// Payloads lie in the content store, one object for each part of a Save that has
// any, under the drawer's id. Whatever else belongs to a bundle lies in the folder
// of its first drawer, there or in the store that hub and domains share.
//
// # Containers
//
// [Containers] lists the containers with their partition keys, index paths and TTL.
// Provision creates them and corrects what can be corrected in place. Every node
// reads their properties before it serves and every few minutes after that, because
// nothing else would show that an index path is missing or that a default TTL deletes
// events. A call that fails in a way that a changed container would explain has them
// read at once, and then reports what is wrong with the container.
//
// # What a reader may trust
//
// Plain reads may be old, each partition by itself. Holding a head, a reader
// trusts the drawer that the head names, up to the fill that the head states; and
// a drawer with a smaller ordinal once it is sealed. It seals one that it sees
// unsealed, by a write that acts on the truth and returns it. It trusts no count:
// that may belong to a Save that will be undone. Drawers above the head's ordinal
// do not exist. A missing ordinal or slot is an old read, never an end.
//
// # Save, and what a crash leaves at each step
//
//  1. Read the head; bring the index of received ids up to it; drop duplicates.
//     An intent that somebody left is rolled back first. Store the payloads: a
//     crash leaves objects that nothing names.
//  2. Reserve: replace the head, with an intent that names the numbers, drawers
//     and slots to be used. A crash leaves the intent, to be rolled back.
//  3. Insert: create the pages. A crash leaves some of them; no head covers them,
//     so nobody reads them.
//  4. Count: raise or create the drawers. A crash leaves counts that no head
//     covers, so nobody trusts them.
//  5. Point: write entries for drawers in which nothing waited; for those that are
//     new, beside the count. A crash leaves entries that point at nothing; choice by
//     the head does not see them.
//  6. Commit: replace the head; now the events are visible, all together. Under
//     load the same write reserves for the Saves that have gathered meanwhile.
//
// Rollback claims the intent (from here on its owner's commit is refused), seals
// its drawers at what they held before (from here on its owner's counts are
// refused), and clears it. The cabinets go on in new drawers, so no slot is ever
// written twice. A crash between the steps leaves the claimed intent, and the
// next writer goes on. The owner of an intent is given two seconds, so that
// writers do not undo each other for ever; being right does not depend on it.
//
// # Peek
//
// The gates and the head are read side by side. An open bundle is returned; where
// reads may be old, a conditional write of its gate proves that it is still open,
// and the same batch reads the bundle, with its answer if it has one. Else the
// cabinets of which the head knows more than the gate has let through are the
// candidates; none means no data, after two requests; one is looked into at once. Their
// entries say which has the smallest number; the first event itself, read from
// the gate's place on, confirms or corrects it. One batch in the recipient's
// partition creates the bundle and replaces the gate: whoever loses that race
// looks again. A crash before it leaves nothing.
//
// With the ordering by recipient the run ends before the smallest number that
// waits in another cabinet of the group. Entries have no say in that; see
// chooseInOrder.
//
// # Dequeue
//
// One round reads the bundle and the gates, one batch closes the bundle and moves
// the gate past it. That is all that has to happen, whatever the bundle's size.
// Positions and entries follow as hints; a crash before them costs the next Peek
// a repair.
//
// # Content on request and notices
//
// A bundle in content mode request waits for its domain. What comes of asking is
// noted in its document, by one patch on condition that it is open and has no
// answer yet. Bundle and gate are opened and closed together in one batch, so the
// bundle's own state is as true as the gate, and a patch acts on the truth: the first
// answer stays and is what every other caller is given, and nothing comes back that
// was closed. A patch changes no gate, so it stands in nobody's way but that of a
// Dequeue that has read the document just before, which looks again.
//
//  1. Whoever peeks asks the domain and makes what it has left his own. A crash
//     leaves an object in the folder of the bundle that nothing names.
//  2. Answer, or Fail, is the patch. A crash before it leaves the bundle as it was:
//     the next Peek asks again. A patch whose reply is lost is known by the object,
//     for all answers end the same, and a failure by the id of its call.
//  3. A Dequeue that sees no answer is refused, once a write that acts on the truth
//     has said so. Else its batch creates the notice as well, under the number of the
//     generation by which the gate closes the bundle. A crash leaves both or neither.
//  4. A courier reads the front of the outbox, tells the domain, and deletes the
//     notice. A crash between the two has the domain told twice, by the same notice.
//
// Notices do not expire, and no bundle in another content mode has one: its Dequeue
// costs what it always has. Their ids ascend in each group with the generation of its
// gate, and a query of the partition in the order of ids gives them without a gap at
// the front: a replica applies the writes of a partition in their order, so one that
// is behind shows what the outbox was at some time, and lacks the newest. That much is
// asked of every consistency level. A notice does not name the one before it: at the
// front a gap would look like one that was delivered.
//
// Who has notices waiting is found by the kind of document, which is indexed for the
// gates already, so no container has to be changed for it; where nothing waits,
// nothing is loaded. As a query of all partitions it is for every now and then.
//
// # What waits behind
//
// Peek and Dequeue tell how much is left, and since when, from what they read and
// write anyhow: not one request, and about a tenth of a request unit for each Save,
// is for that. Head and gates count; the gate has the time of the event behind the
// last bundle, if it was read, and the head the times of some Saves of each
// cabinet (see mark). A Dequeue reads no head. It counts from the newest that this
// node has seen or, if that is older than the one of the Peek, says what the Peek
// has said.
//
// # Retention, and what a crash leaves at each step
//
// What is acknowledged is kept for a while, then whole drawers go, and with each
// its pages, its filter, its entry and its payloads. Closed bundles expire by
// themselves. Any number of nodes may sweep.
//
//  1. Read the head, then the gates. Note in the head, as a milestone, below which
//     ordinal all is acknowledged. A crash leaves milestones, which anybody uses.
//  2. Once a milestone is old enough, prove the gate by a conditional write, and
//     raise the floor in the head to it, on condition that its retention is what
//     was read. A crash leaves a floor with drawers below it that nobody reads.
//  3. Remove what lies below the floor: the folder of each drawer in both content
//     stores, whether it had payloads or not, entry, pages, and the drawer at last. A
//     crash leaves the drawer, so the next sweep goes on.
//  4. Note in the head that the floor is cleared.
//
// The milestones and the floor are patched on condition of the retention's own
// fence, so a Save under way is not disturbed: its commit is refused once, finds
// its intent standing, and is made on the head as it is then. Only when the drawer
// that is being filled is to go, because all of it is acknowledged and nothing
// comes any more, is the head replaced, and not while an intent fills that
// cabinet. Nothing depends on a clock but how long things are kept.
//
// A Replay moves a gate back. It reads the gate, moves the fence, and then replaces
// the gate: a sweep that has read the retention before is refused by the fence, and
// one that has read it after proves the gate, which makes the Replay's own write
// fail. So no floor rises above what was unacknowledged again.
//
// A bundle has its list of ids and its content in the folder of its first drawer.
// They are there as long as it is open or can be opened again:
//
//   - While it is open, its gate stands in front of its first event, and no floor
//     rises above the drawer in which the gate stands.
//   - When it is closed, its first drawer is acknowledged at that moment or, if the
//     gate still stands in it, later. The milestone that takes it in is made after
//     that, and the floor rises to it when it is as old as the retention. By then the
//     bundle has expired, give or take what the clocks of the nodes and of Cosmos
//     differ.
//   - A Replay does not rely on that. It is refused where the floor is above the
//     first drawer, and its fence takes away the milestones that are: either the
//     floor has risen before, and nothing is opened, or it stays down until the
//     bundle is closed again, which begins the retention anew.
//   - A bundle that was released is never opened again. Its events are in another
//     one, with another id, which begins in the same drawer.
//   - Kept for ever means that no floor rises and no bundle expires.
//
// What is put into a folder after its drawer has gone stays: of a Peek, say, that
// has lost its race and slept through the retention. It is named by nothing.
//
// TestASweepDisturbsNobodyInAnyOrder runs a sweep against Peek, Dequeue, Save,
// Replay and another sweep in every order of their requests with so many changes
// of turn.
//
// # Operators
//
// Each order of an operator is one batch in the partition of gates and bundles:
// the gate, the bundle, and a record of who, what and why, which is also what a
// refused batch is known by. Freezing writes all gates, so that whatever a Peek or
// Dequeue has read before, its write is refused.
//
// A Replay is the one thing that moves a gate back. Positions and entries of its
// drawers may be too high from then on, for a Save or the hints of a Dequeue may
// write them by what was true before. So the gate remembers how far it has been,
// and up to there a Peek looks into the cabinet whatever the entry says. Nor is a
// copy of a bundle that says closed a proof that it still is.
//
// # Check
//
// A check reads everything and holds it to the invariants. What a head states
// stays true, so it can be held to it while the hub runs; hints follow later, so
// what looks wrong is looked at twice, and what moves is left alone. A mailbox that
// cannot be read, because it is damaged or has a newer format, is a finding, and the
// check continues with the next recipient. A repair corrects hints and rolls back
// unfinished intents, each by one conditional write, so it can be interrupted anywhere.
//
// # Formats and upgrades
//
// Nodes of two versions work on one store while a deployment is upgraded, and after
// an upgrade was taken back. A version that only adds members to documents needs
// nothing more: an older node keeps members that it does not know, at every level,
// as long as the object that they are in is there. It drops them with the object: a
// deleted entry, an intent that has ended, a floor that has passed a milestone. Three
// things are not objects and cannot be extended in this way: marks, the events in a
// page, and the name of a cabinet.
//
// A version that an older node must not work beside raises the format number of a
// kind of document (see documentKind), the member v. Missing, it is 1. An older node
// that reads such a document fails with NewerFormat, names the mailbox in its log and
// metrics, and writes nothing more to that mailbox: every call begins with the
// head or the gates, each patch has the format as a condition, each replacement the
// etag of what was read, and what remains are creations, and deletions of what was just
// read. So a newer version keeps these rules:
//
//   - Before it stores the first document of a mailbox in a newer format, it raises
//     the head, while that has no intent, then all gates and the bundles that are
//     open, by conditional writes. An older node that has read one of them before is
//     refused by its etag or, if it answers for a bundle, by the condition of its patch.
//   - It never lowers a number.
//   - A write that changes the retention in a head changes the fence, too.
//   - Members whose names begin with an underscore are Cosmos's.
//
// TestTwoVersions_ShareAStoreAndLoseNothing runs two builds side by side, and
// TestEveryReplacedDocument_KeepsMembersItDoesNotKnow adds a member to every object
// that is stored before each call.
//
// # Outcomes
//
// Every conditional write carries a write id. A refusal (404, 409, 412) is
// a question: the document is read back, and if it carries the id, the write had
// been carried out. So a write whose reply was lost is simply sent again. All
// retries of one call share one budget; what is left open when it ends is
// Uncertain, and calling again is safe.
//
// # What the tests would say
//
// Each of these rules was left out once, by hand, to see that a test notices:
//
//	If-Match of the head                           TestACommitBeatsARollbackThatHasNotClaimedYet
//	If-Match of gate and bundle                    TestConformance/Race/W12
//	the claim before a rollback                    TestACommitBeatsARollbackThatHasNotClaimedYet
//	the seals of a rollback                        TestACountAboveTheHeadsFillIsNotTrusted
//	a new drawer, and new ordinals, after it       TestACountAboveTheHeadsFillIsNotTrusted, TestEveryCallBroken…
//	the fill of the head, not the drawer's count   TestACountAboveTheHeadsFillIsNotTrusted
//	only sealed drawers below it                   TestNothingIsLostDoubledOrReorderedInChaos
//	every ordinal, every slot                      TestAnIndexThatAnOldReadMadeShortIsNotUsed, TestAHoleInTheSlots…
//	the gate's place, not the drawer's position    TestAPointerThatIsTooLowDoesNotWinTheChoice
//	one's own write id, not the watermark          TestAWatermarkPastOnesRangeProvesNothing
//	write ids at all                               TestEveryCallBrokenOnceInEveryWay
//	the condition on a count                       TestNothingIsLostDoubledOrReorderedInChaos
//	the proof that an open bundle is still open    TestNothingIsLostDoubledOrReorderedInChaos
//	the proof before a 404                         TestNothingIsLostDoubledOrReorderedInChaos
//	the index brought up to the head               TestNothingIsLostDoubledOrReorderedInChaos
//	choosing again after a repair                  TestAPointerThatARollbackLeftBehindDoesNotWinTheChoice
//	looking where a pointer is missing             TestAPointerThatIsMissingIsPutBack
//	at most six drawers                            TestConformance/Next
//	a batch fixed once it is reserved              TestConformance/Race
//	giving way to another process                  TestABusyNodeLetsAnotherIn
//	the cabinets, not the entries, where order     TestTheOrderOfTheRecipientRestsOnNoPointer
//	the place at which a first event was first     TestNothingIsLostDoubledOrReorderedInChaos
//	a head no older than that of the Peek          TestADequeueDoesNotCountFromAHeadOlderThanThePeek
//	the groups that the Peek was about             TestConformance/Backlog
//	the proof of the gate before a floor rises     TestASweepDisturbsNobodyInAnyOrder
//	the fence, in the sweep and in a Replay        TestASweepDisturbsNobodyInAnyOrder
//	the drawer that an intent fills                TestASaveUnderWayGoesOnWhenTheRetentionMoves
//	the gate's own drawer                          TestNothingUnacknowledgedEverGoes
//	how far the gate has been before a Replay      TestAPointerThatAReplayLeftTooHighDoesNotLoseTheChoice
//	the proof before a 404, of a closed bundle     TestADequeueOfAReplayedBundleIsNotRefusedForAnOldRead
//	asking for a record by a write                 TestAnOrderWhoseReplyIsLostSucceedsWhateverIsReadThen
//	that an answer finds the bundle open           TestConformance/Answer
//	that it finds no answer                        TestABundleOnRequestComesThroughInEveryOrder
//	the call by which a failure is known           TestAFailureWhoseReplyIsLostCountsOnce
//	that a Dequeue wants an answer                 TestABundleThatIsUnansweredIsNotDequeuedWhateverIsRead
//	the truth, before that is said                 TestAnOldCopyDoesNotSayThatABundleIsUnanswered
//	the truth, where an answer was refused         TestALateAnswerIsRefusedAndASecondOneToldOfTheFirstWhateverIsRead
//	reading an open bundle in the batch            TestAPeekShowsTheAnswerThatWasNotedWhateverIsRead
//	one's own Dequeue, before a 404                TestADequeueWhoseReplyIsLostSucceedsThoughAnOldCopyIsUnanswered
//	the notice in the batch, not before it         TestABundleOnRequestComesThroughInEveryOrder
//	the notice in the batch, not after it          TestEveryCallBrokenOnceInEveryWay
//	the groups behind a long outbox                TestConformance/Outbox
//	going on where the last look has stopped       TestThoseWhoseNoticesStayDoNotHideTheOthers
//	the folder in the shared store                 TestWhatIsSharedOfABundleGoesWithItsFirstDrawer
//	the folder of the first drawer                 TestABundleThatCanBeReplayedHasAllThatIsShared
//	members that are not known                     TestEveryReplacedDocument_KeepsMembersItDoesNotKnow
//	the format number                              TestADocumentOfANewerFormat_IsNeverWritten
//
// Two more were left out without anybody noticing: that a page at one's slot must
// be one's own, and that a refused count must be. They are second lines of
// defence; a drawer that a rollback has sealed is never filled again.
//
// # Departures
//
// The filter of a sealed drawer takes eight bytes an event rather than one, so
// that a large Save does not read old drawers in vain (see filter). Counting is a
// patch with a condition on count and seal rather than a replace If-Match, since
// moving the position of a drawer is not a reason to count again. A process that
// waits for another's intent marks the head as wanted, and the owner, whose
// commit is refused for it, commits on the marked head and does not reserve with
// it: else a busy node, whose head is never without an intent, would keep all
// others out. The lease doubles with every rollback since the last commit.
// Payloads are stored before the intent, so that a content store that is out of
// reach costs a Save and not a drawer. A recipient has at most 1,000 cabinets.
//
// What was acknowledged is kept for the retention and up to a quarter longer, for
// milestones are made only that often: the head is not to grow. The drawer that is
// being filled goes as well, once all of it has been acknowledged for that long.
package cosmos
