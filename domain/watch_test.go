package domain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func TestAWatchID_SortsByItsTime(t *testing.T) {
	at := time.Date(2026, 11, 26, 5, 0, 0, 0, time.UTC)
	early := domain.NewWatchID(at, [10]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255})
	late := domain.NewWatchID(at.Add(time.Millisecond), [10]byte{})
	require.Less(t, early.String(), late.String())
	again, err := domain.ParseWatchID(early.String())
	require.NoError(t, err)
	require.Equal(t, early, again)
}

func TestTheCursorOfAWatch_NamesOwnerAndWatch(t *testing.T) {
	owner, err := domain.ParseActorID("5799999933318")
	require.NoError(t, err)
	id := domain.NewWatchID(time.Now(), [10]byte{1})
	cursor, err := domain.ParseCursorID(id.Cursor(owner).String())
	require.NoError(t, err)
	gotOwner, gotID, isWatch := domain.WatchOf(cursor)
	require.True(t, isWatch)
	require.Equal(t, owner, gotOwner)
	require.Equal(t, id, gotID)
	for _, text := range []string{"s|0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41", "w|a", "w|a|b", "c|w|0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"} {
		other, err := domain.ParseCursorID(text)
		require.NoError(t, err)
		_, _, isWatch = domain.WatchOf(other)
		require.False(t, isWatch, text)
	}
}

func TestAChange_IsReadFromItsMessage(t *testing.T) {
	r, err := domain.Kept("prices")
	require.NoError(t, err)
	want := domain.Change{Resource: r, Version: 7, Event: domain.ResourceDeleted, At: time.Date(2026, 11, 26, 5, 0, 0, 123_456_000, time.UTC)}
	m := want.Message()
	require.NoError(t, m.Check())
	got, err := domain.ChangeOf(&m, 6)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, attribute := range []string{"event", "resource", "time"} {
		broken := want.Message()
		broken.Attributes[attribute] = "x"
		_, err := domain.ChangeOf(&broken, 6)
		require.Error(t, err, attribute)
	}
}

func TestAWatch_IsCalledAgainByItsSchedule(t *testing.T) {
	p := domain.WatchPolicy(time.Hour, 5)
	at := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	for attempts, want := range []time.Duration{1: time.Hour, 2: 2 * time.Hour, 3: 4 * time.Hour, 4: 8 * time.Hour} {
		if attempts > 0 {
			require.Equal(t, at.Add(want), domain.DecideRetry(p, at, at.Add(want/2+time.Second), attempts, domain.Answer{Status: 500}).Due)
		}
	}
	require.True(t, domain.DecideRetry(p, at, at, 5, domain.Answer{Status: 500}).Dead)
	late := at.Add(9 * time.Hour) // the hub was down, so attempts resume late, with the intervals of the schedule
	for attempts, gap := range []time.Duration{1: time.Hour, 2: time.Hour, 3: 2 * time.Hour, 4: 4 * time.Hour} {
		if attempts > 0 {
			require.Equal(t, late.Add(gap), domain.DecideRetry(p, at, late, attempts, domain.Answer{Status: 500}).Due)
		}
	}
	require.False(t, domain.DecideRetry(p, at, at, 1, domain.Answer{Status: 410}).Pause)
	long := domain.WatchPolicy(30*24*time.Hour, 20)
	require.True(t, domain.DecideRetry(long, at, at, 19, domain.Answer{}).Due.After(at), "the due time does not overflow")
}
