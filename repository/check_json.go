package repository

import "encoding/json"

// In JSON, the member repaired of a CheckReport and of a Finding was named mended until November 2026. Both members are
// written, so that programs that read mended still work. Both are read, because the hub or the state file may be older.

// MarshalJSON writes the members repaired and mended, which have the same value.
func (r CheckReport) MarshalJSON() ([]byte, error) {
	type members CheckReport
	return json.Marshal(struct {
		members
		Mended int64 `json:"mended"`
	}{members(r), r.Repaired})
}

// UnmarshalJSON reads the member repaired or, if it is missing or 0, mended.
func (r *CheckReport) UnmarshalJSON(text []byte) error {
	type members CheckReport
	all := struct {
		*members
		Mended int64 `json:"mended"`
	}{members: (*members)(r)}
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	r.Repaired = max(r.Repaired, all.Mended)
	return nil
}

// MarshalJSON writes the members repaired and mended, which have the same value.
func (f Finding) MarshalJSON() ([]byte, error) {
	type members Finding
	return json.Marshal(struct {
		members
		Mended bool `json:"mended"`
	}{members(f), f.Repaired})
}

// UnmarshalJSON reads the members repaired and mended; one of them is enough.
func (f *Finding) UnmarshalJSON(text []byte) error {
	type members Finding
	all := struct {
		*members
		Mended bool `json:"mended"`
	}{members: (*members)(f)}
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	f.Repaired = f.Repaired || all.Mended
	return nil
}
