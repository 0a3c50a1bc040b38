package domain

import "strings"

// A PartyList names a list of the broker's parties: all producers, all channels, or the consumers
// of one channel. The names in a list are unique and case-sensitive.
type PartyList struct {
	kind    partyKind
	channel string // name of the channel, for a list of consumers
}

type partyKind int

const (
	producerParty partyKind = iota + 1
	channelParty
	consumerParty
)

// The lists of all producers and of all channels.
var (
	Producers = PartyList{kind: producerParty}
	Channels  = PartyList{kind: channelParty}
)

// Parse returns the party called name in the list l. It accepts the names that ParseActorID
// accepts.
func (l PartyList) Parse(name string) (PartyID, error) {
	if err := checkName(l.kind.String()+" id", name); err != nil {
		return PartyID{}, err
	}
	return PartyID{l, name}, nil
}

// String returns the unique name of the list: producers, channels, or consumers|CHANNEL.
func (l PartyList) String() string {
	if l.kind == consumerParty {
		return l.kind.String() + "s|" + l.channel
	}
	return l.kind.String() + "s"
}

// Channel returns the channel of a list of consumers. It returns false if l is a different list.
func (l PartyList) Channel() (PartyID, bool) {
	return PartyID{Channels, l.channel}, l.kind == consumerParty
}

func (k partyKind) String() string {
	return [...]string{producerParty: "producer", channelParty: "channel", consumerParty: "consumer"}[k]
}

// A PartyID identifies a producer, a channel, or a consumer of a channel. Consumers of different
// channels may have the same name.
type PartyID struct {
	list PartyList
	name string
}

// List returns the list to which the party belongs.
func (p PartyID) List() PartyList { return p.list }

// String returns the name of the party.
func (p PartyID) String() string { return p.name }

// FullName returns the party's name. The name of a consumer follows the name of its channel and a
// slash: prices/billing.
func (p PartyID) FullName() string {
	if p.IsConsumer() {
		return p.list.channel + "/" + p.name
	}
	return p.name
}

// Describe returns the party's kind and full name, such as consumer prices/billing.
func (p PartyID) Describe() string { return p.list.kind.String() + " " + p.FullName() }

// Consumers returns the list of a channel's consumers.
func (p PartyID) Consumers() PartyList { return PartyList{consumerParty, p.name} }

// Channel returns the channel that a consumer reads.
func (p PartyID) Channel() PartyID { return PartyID{Channels, p.list.channel} }

// IsConsumer reports whether p is a consumer.
func (p PartyID) IsConsumer() bool { return p.list.kind == consumerParty }

// Stream returns the stream of a channel. For a consumer, it returns the stream of its channel.
func (p PartyID) Stream() StreamName {
	if p.IsConsumer() {
		return StreamName{channelKind, p.list.channel}
	}
	return StreamName{channelKind, p.name}
}

// Cursor returns the id of a consumer's cursor.
func (p PartyID) Cursor() CursorID { return CursorID{consumerPrefix + p.list.channel + "|" + p.name} }

const consumerPrefix = "c|"

// ConsumerOf returns the consumer whose cursor has the given id. It returns false if the cursor
// does not belong to a consumer.
func ConsumerOf(id CursorID) (PartyID, bool) {
	text, isConsumer := strings.CutPrefix(id.s, consumerPrefix)
	channel, name, hasName := strings.Cut(text, "|")
	return PartyID{PartyList{consumerParty, channel}, name}, isConsumer && hasName
}
