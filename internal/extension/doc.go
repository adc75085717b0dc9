// Package extension tests stage 2: the Python tests of targets/extension run in
// the oldest and the newest torch, on one generation that invar built.
package extension
