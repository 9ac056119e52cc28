// The file systems on which a ledger's file may lie.
#pragma once

namespace cuwarden::ledger {

// The type of btrfs in statfs::f_type.
inline constexpr long btrfs_type = 0x9123683E;

// True if a ledger may lie on file systems of this type (statfs::f_type). Their shared mappings are
// known to behave: a page that was written once stays writable, and the file is sparse. On btrfs,
// this needs a file without copy-on-write. False for all others (network, FUSE, FAT, …): their
// folders get no ledger.
constexpr bool can_hold_a_ledger(long type) {
  switch (type) {
    case 0xEF53:      // ext2, ext3, ext4
    case 0x58465342:  // xfs
    case 0x01021994:  // tmpfs
    case 0x858458f6:  // ramfs
    case 0xF2F52010:  // f2fs
    case 0x2fc12fc1:  // zfs
    case 0x794c7630:  // overlayfs: its upper layer is one of the others
    case btrfs_type:
      return true;
    default:
      return false;
  }
}

}  // namespace cuwarden::ledger
