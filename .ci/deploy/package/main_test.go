package main

import (
	"path/filepath"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
)

func TestWritePackage_HasTheVersionOfTheHub(t *testing.T) {
	for _, c := range []struct{ hub, chart string }{
		{"v1.2.3", "1.2.3"},
		{"v1.2.3-4-gb9e66ec1", "1.2.3-4-gb9e66ec1"},
		{"v1.2.3-dirty", "1.2.3-dirty"},
		{"b9e66ec1", "0.0.0-gb9e66ec1"},
		{"01234567", "0.0.0-g01234567"},
		{"b9e66ec1-dirty", "0.0.0-gb9e66ec1-dirty"},
		{"dev", "0.0.0-gdev"},
		{"v1.2", "0.0.0-gv1.2"},
	} {
		archive, err := writePackage("../../../deploy/helm/messagehub", c.hub, t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", c.hub, err)
			continue
		}
		packed, err := loader.Load(archive)
		if err != nil {
			t.Fatal(err)
		}
		if m := packed.Metadata; m.Version != c.chart || m.AppVersion != c.hub || filepath.Base(archive) != "messagehub-"+c.chart+".tgz" {
			t.Errorf("%s: chart %s of hub %s in %s", c.hub, m.Version, m.AppVersion, archive)
		}
	}
}

func TestWritePackage_RefusesAnInvalidVersion(t *testing.T) {
	for _, version := range []string{"", "a b", "../x"} {
		if archive, err := writePackage("../../../deploy/helm/messagehub", version, t.TempDir()); err == nil {
			t.Errorf("%q: %s", version, archive)
		}
	}
}
