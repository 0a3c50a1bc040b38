package domain_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
)

const (
	someUUID = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
	nilUUID  = "00000000-0000-0000-0000-000000000000"
)

var uuids = []parser{
	parserOf("event id", domain.ParseEventID),
	parserOf("bundle id", domain.ParseBundleID),
}

func TestUUIDs(t *testing.T) {
	for _, p := range uuids {
		for _, tc := range []struct{ name, text string }{
			{"lower case", someUUID},
			{"upper case", strings.ToUpper(someUUID)},
			{"mixed case", "0B9f4C5e-7A52-4d57-9D0c-3F1e6B8a2C41"},
			{"no version", "11111111-1111-1111-1111-111111111111"},
			{"the least", "00000000-0000-0000-0000-000000000001"},
			{"the greatest", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
		} {
			t.Run(p.what+"/"+tc.name+" prints as lower case", func(t *testing.T) {
				got, err := p.parse(tc.text)
				require.NoError(t, err)
				require.Equal(t, strings.ToLower(tc.text), got)
			})
		}
		for _, tc := range []struct{ name, text string }{
			{"nothing", ""},
			{"a word", "nope"},
			{"without dashes", strings.ReplaceAll(someUUID, "-", "")},
			{"in braces", "{" + someUUID + "}"},
			{"as a URN", "urn:uuid:" + someUUID},
			{"one digit short", someUUID[:35]},
			{"one digit more", someUUID + "1"},
			{"a leading blank", " " + someUUID[:35]},
			{"a letter that is not a hexadecimal digit", "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2cXX"},
			{"a dash at another place", "0b9f4c5-e7a52-4d57-9d0c-3f1e6b8a2c41"},
			{"an additional dash", "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a-c41"},
			{"a dash of another kind", "0b9f4c5e_7a52_4d57_9d0c_3f1e6b8a2c41"},
			{"digits of another script", "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c٤"},
		} {
			t.Run(p.what+"/"+tc.name+" is refused", func(t *testing.T) {
				got, err := p.parse(tc.text)
				requireInvalid(t, err, p.what+`: want a UUID such as 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41, got "`+tc.text+`"`)
				require.Equal(t, nilUUID, got)
			})
		}
		t.Run(p.what+"/a long text is cut short in the error", func(t *testing.T) {
			_, err := p.parse(strings.Repeat("x", 1<<20))
			requireInvalid(t, err, p.what+`: want a UUID such as 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41, got "`+strings.Repeat("x", 64)+`…"`)
		})
		t.Run(p.what+"/the nil UUID is refused", func(t *testing.T) {
			_, err := p.parse(nilUUID)
			requireInvalid(t, err, p.what+": the nil UUID names nothing")
		})
	}
}

func TestEveryIDExceptTheNilUUID_IsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var id domain.EventID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		if id == (domain.EventID{}) {
			id[15] = 1
		}
		parsed, err := domain.ParseEventID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, parsed)
		require.Equal(t, "id: "+id.String(), string(id.Append([]byte("id: "))))

		bundle, err := domain.ParseBundleID(strings.ToUpper(domain.BundleID(id).String()))
		require.NoError(t, err)
		require.Equal(t, domain.BundleID(id), bundle)
	})
}

func FuzzParseEventID(f *testing.F) {
	for _, text := range []string{someUUID, strings.ToUpper(someUUID), nilUUID, "{" + someUUID + "}", "", strings.Repeat("-", 36)} {
		f.Add(text)
	}
	form := regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
	f.Fuzz(func(t *testing.T, text string) {
		id, err := domain.ParseEventID(text)
		if accepted := form.MatchString(text) && text != nilUUID; !accepted {
			require.Equal(t, domain.Invalid, domain.KindOf(err), "%q gave %v", text, id)
			require.Equal(t, domain.EventID{}, id)
			require.Less(t, len(err.Error()), 400)
			return
		}
		require.NoError(t, err)
		require.Equal(t, strings.ToLower(text), id.String())
		again, err := domain.ParseEventID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, again)
	})
}

func TestClip_ShortensLongText(t *testing.T) {
	require.Equal(t, "short", domain.Shorten("short"))
	require.Equal(t, strings.Repeat("x", 64)+"…", domain.Shorten(strings.Repeat("x", 65)))
}
