// Command package writes the Helm chart as an archive that has the version of the hub:
//
//	go -C .ci/deploy run ./package -version "$(git describe --tags --always)" -out FOLDER
//
// It replaces an existing archive.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

func main() {
	version := flag.String("version", "dev", "`VERSION` of the hub, as git describe prints it")
	folder := flag.String("chart", "../../deploy/helm/messagehub", "`FOLDER` with the chart")
	out := flag.String("out", ".", "`FOLDER` for the archive")
	flag.Parse()
	archive, err := writePackage(*folder, *version, *out)
	if err != nil {
		fmt.Fprintf(os.Stderr, "package the chart: %v\n", err)
		os.Exit(1)
	}
	fmt.Println(archive)
}

// writePackage packages the chart in folder for a version of the hub, and returns the path of the archive.
func writePackage(folder, version, out string) (string, error) {
	if version == "" {
		return "", errors.New("want a version; give that of the hub with -version")
	}
	c, err := loader.Load(folder)
	if err != nil {
		return "", err
	}
	c.Metadata.Version, c.Metadata.AppVersion = chartVersion(version), version
	return chartutil.Save(c, out)
}

// chartVersion returns the version of the hub in the format that Helm requires:
// SemVer without a v. The name of a commit becomes a prerelease of 0.0.0.
func chartVersion(version string) string {
	if v, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err == nil {
		return v.String()
	}
	return "0.0.0-g" + version
}
