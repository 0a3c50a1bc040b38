package repositorytest

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// newParty returns a party of a list that no other test uses.
func (f *pushFixture) newParty(list domain.PartyList) *repository.Party {
	f.Helper()
	id, err := list.Parse("p." + NewActor().String())
	require.NoError(f, err)
	return f.partyOf(id)
}

func (f *pushFixture) partyOf(id domain.PartyID) *repository.Party {
	now := f.readClock()
	p := &repository.Party{ID: id, Label: "Prices, or \"é\"", Created: now, Changed: now.Add(time.Second)}
	if id.IsConsumer() {
		p.Token, p.CallbackURL = "sealed", "https://example.org/hook?a=1&b=<2>"
		p.Start = repository.StreamEnd{Segment: 1, Positions: []domain.Position{{EntryID: domain.EntryID{Priority: 9, Number: 4}, Segment: 1, Page: 2}}}
		return p
	}
	p.TokenSum = sha256.Sum256([]byte(id.String()))
	return p
}

func (f *pushFixture) putParty(p *repository.Party) {
	f.Helper()
	version, err := f.Parties.PutParty(f.ctx, p)
	require.NoError(f, err)
	require.NotEmpty(f, version)
	require.NotEqual(f, p.Version, version)
	p.Version = version
}

func (f *pushFixture) requireParty(want *repository.Party) {
	f.Helper()
	got, err := f.Parties.Party(f.ctx, want.ID)
	require.NoError(f, err)
	require.Equal(f, want, got)
}

// requireParties requires that a list, read from the name first, contains exactly these parties.
func (f *pushFixture) requireParties(list domain.PartyList, first string, limit int, want ...*repository.Party) {
	f.Helper()
	got, err := f.Parties.Parties(f.ctx, list, first, limit)
	require.NoError(f, err)
	require.Len(f, got, len(want))
	for i := range want {
		require.Equal(f, want[i], got[i])
	}
}

var partyRules = []pushRule{
	{"APartyThatIsPutIsRead", func(f *pushFixture) {
		channel := f.newParty(domain.Channels)
		consumer := f.newParty(channel.ID.Consumers())
		for _, p := range []*repository.Party{f.newParty(domain.Producers), channel, consumer} {
			_, err := f.Parties.Party(f.ctx, p.ID)
			f.wantKind(domain.NotFound, err)
			f.putParty(p)
			f.requireParty(p)
			p.Label, p.Changed = "", p.Changed.Add(time.Hour)
			f.putParty(p)
			f.requireParty(p)
		}
	}},
	{"APartyIsReplacedByItsVersionOnly", func(f *pushFixture) {
		p := f.newParty(domain.Producers)
		p.Version = "none"
		_, err := f.Parties.PutParty(f.ctx, p)
		f.wantKind(domain.NotFound, err)
		p.Version = ""
		f.putParty(p)
		second := p.Clone()
		second.Version = ""
		_, err = f.Parties.PutParty(f.ctx, second)
		f.wantKind(domain.Conflict, err)
		second.Version = p.Version
		f.putParty(second)
		_, err = f.Parties.PutParty(f.ctx, p)
		f.wantKind(domain.Conflict, err)
		f.requireParty(second)
	}},
	{"OneOfManyChangesWins", func(f *pushFixture) {
		p := f.newParty(domain.Channels)
		for range 2 { // the first iteration creates the party, the second replaces it
			var wins sync.Map
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					mine := p.Clone()
					mine.Label = fmt.Sprint(i)
					if version, err := f.Parties.PutParty(f.ctx, mine); err == nil {
						mine.Version = version
						wins.Store(i, mine)
					}
				})
			}
			all.Wait()
			n := 0
			wins.Range(func(_, winner any) bool { n, p = n+1, winner.(*repository.Party); return true })
			require.Equal(f, 1, n)
			f.requireParty(p)
		}
	}},
	{"AListIsInTheOrderOfTheBytesOfItsNames", func(f *pushFixture) {
		channel := f.newParty(domain.Channels)
		f.putParty(channel)
		var all []*repository.Party
		for _, name := range []string{"_", "A", "Z", "a", "a-", "a.b", "b"} {
			id, err := channel.ID.Consumers().Parse(name)
			require.NoError(f, err)
			all = append(all, f.partyOf(id))
		}
		all = []*repository.Party{all[1], all[2], all[0], all[3], all[4], all[5], all[6]} // sorted by ASCII
		for _, i := range []int{3, 0, 6, 2, 5, 1, 4} {
			f.putParty(all[i])
		}
		f.requireParties(channel.ID.Consumers(), "", 10, all...)
		f.requireParties(channel.ID.Consumers(), "a", 2, all[3:5]...)
		f.requireParties(channel.ID.Consumers(), "a,", 10, all[4:]...)
		f.requireParties(channel.ID.Consumers(), "c", 10)
		f.requireParties(channel.ID.Consumers(), "", 0)
		other := f.newParty(domain.Channels)
		f.requireParties(other.ID.Consumers(), "", 10)
	}},
	{"ListsDoNotMix", func(f *pushFixture) {
		producer := f.newParty(domain.Producers)
		channel, err := domain.Channels.Parse(producer.ID.String())
		require.NoError(f, err)
		f.putParty(producer)
		_, err = f.Parties.Party(f.ctx, channel)
		f.wantKind(domain.NotFound, err)
		consumer, err := channel.Consumers().Parse("a")
		require.NoError(f, err)
		_, err = f.Parties.Party(f.ctx, consumer)
		f.wantKind(domain.NotFound, err)
		f.putParty(f.partyOf(channel))
		f.requireParty(producer)
	}},
}
