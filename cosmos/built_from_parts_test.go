package cosmos

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fillValue sets v, and all that it contains, to values that are not zero.
func fillValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	case reflect.String:
		v.SetString("x")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fillValue(v.Index(i))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillValue(key)
		fillValue(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if at, ok := v.Addr().Interface().(*time.Time); ok {
			*at = time.Unix(1, 0)
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fillValue(v.Field(i))
			}
		}
	default:
		panic("no stored member has the kind " + v.Kind().String())
	}
}

// filled returns an object whose members are not zero.
func filled[T any]() (object T) {
	fillValue(reflect.ValueOf(&object).Elem())
	return object
}

// requireMembersCopied requires that after has the members of before, except those in sets.
func requireMembersCopied[T any](t *testing.T, function string, sets []string, before, after T) {
	t.Helper()
	old, built := reflect.ValueOf(before), reflect.ValueOf(after)
	for _, name := range sets {
		_, ok := old.Type().FieldByName(name)
		require.True(t, ok, "%T has no member %s", before, name)
	}
	for i := range old.NumField() {
		field := old.Type().Field(i)
		if !field.IsExported() || slices.Contains(sets, field.Name) {
			continue
		}
		require.False(t, old.Field(i).IsZero(), field.Name)
		assert.Equal(t, old.Field(i).Interface(), built.Field(i).Interface(),
			"%s loses the member %s of %T: copy it in %s, or add it to the members that %s sets, in this test", function, field.Name, before, function, function)
	}
}

// Some functions build the next state of an object from its parts. A member that is added to the type of the object is
// lost if such a function does not copy it.
func TestAnObjectThatIsBuiltFromParts_KeepsTheOtherMembers(t *testing.T) {
	const name cabinetName = "Charges|x"
	state, at := filled[cabinetState](), filled[position]()

	h := &head{Cabinets: map[cabinetName]cabinetState{name: state}, Intent: &intent{Parts: []drawerPart{{Cabinet: name, Drawer: "new", Count: 1}}}}
	requireMembersCopied(t, "commitIntent", []string{
		"Drawer", "Fill", "Ordinal", "Sequence", "Total", "Marks",
		"Paged", "Tail", "Saves", // a tail is flushed before an intent is stored
	}, state, h.commitIntent(nil).Cabinets[name])

	g := &gate{At: map[cabinetName]position{name: at}}
	b := &bundleDoc{Cabinet: name, Last: 5, Ranges: []slotRange{{Ordinal: 2, To: 3}}}
	moves := []string{"Ordinal", "Slot", "Sequence", "Total", "NextSaved", "Doubt"}
	requireMembersCopied(t, "advancePast", moves, at, g.advancePast(b, "w").At[name])
	requireMembersCopied(t, "rewindTo", moves, at, g.rewindTo(b, "w").At[name])
	requireMembersCopied(t, "abandon", moves, at, g.abandon(name, position{Ordinal: 2}, "w").At[name])

	kept := filled[retained]()
	requireMembersCopied(t, "advanceTo", []string{"Floor", "Milestones"}, kept, kept.advanceTo(state, at, time.Unix(2, 0), time.Hour))

	entry := filled[catalogEntry]()
	requireMembersCopied(t, "replacementFor", []string{
		"ID", "PartitionKey", "ContentType", "Ordinal", "NextSequence",
		"ETag", // Cosmos sets it
	}, entry, *catalogEntry{}.replacementFor(&entry))
}
