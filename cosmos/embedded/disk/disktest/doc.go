// Package disktest simulates a failing disk, for tests of packages that use package disk. It
// needs Linux, which has a device that is always full, and a device that cannot be synced.
package disktest
