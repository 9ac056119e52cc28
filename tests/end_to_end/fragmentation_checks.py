"""Checks of the reports of checkerboard programs: they fill slabs with pieces of memory and free
some of them.

The reports are compared with the bytes that the device itself got back.
"""

MIB = 1 << 20


def is_close(found, expected, whole):
    """Returns true if the two numbers differ by at most 1 % of `whole`."""
    return abs(found - expected) <= whole / 100


def check_checkerboard(report, facts, piece_bytes):
    if facts["live_count"] == 0:
        assert report["fragmentation"] == []
        return None
    (row,) = report["fragmentation"]
    freed, given_back = facts["freed_bytes"], facts["given_back_bytes"]
    held = facts["held_when_full_bytes"] - given_back
    lost = held - facts["live_bytes"]  # bytes that the device holds beside live allocations
    assert is_close(row["slab_locked_bytes"] + row["rounding_bytes"], lost, held), (row, facts)
    if piece_bytes <= MIB:
        assert row["slab_count"] * row["page_bytes"] == held, (row, facts)
    else:
        assert row["slab_count"] == 0 and row["slab_locked_bytes"] == 0
    if 2 * MIB % piece_bytes == 0:  # otherwise the ends of slabs are lost as well
        assert is_close(row["slab_locked_bytes"], freed - given_back, held), (row, facts)
    assert row["page_bytes"] == 2 * MIB
    assert row["excess_bytes"] == 0
    accounts = {row["item"]: row["bytes"] for row in report["accounts"]}
    assert accounts["live_device"] == facts["live_bytes"]
    assert accounts.get("slab_waste", 0) == row["slab_locked_bytes"]
    assert accounts.get("rounding_waste", 0) == row["rounding_bytes"]
    return row


def check_worst_moment(report, facts, piece_bytes, names_of, threads=1):
    """Checks the worst moment in a report: the program made a checkerboard, and freed all of it before its
    end.

    While the first slab is freed, a little more is locked, until the slab's last piece is freed. If several
    threads free, slabs may have locked more before their last pieces were freed.
    """
    assert report["fragmentation"] == [] and report["slab_map"] == []
    (row,) = report["worst_fragmentation"]
    held = facts["held_when_full_bytes"] - facts["given_back_bytes"]
    lost = held - facts["live_bytes"]
    locked = row["slab_locked_bytes"] + row["rounding_bytes"]
    live_bytes = sum(slab["live_bytes"] for slab in report["worst_slab_map"])
    if threads == 1:
        assert is_close(locked, lost, held), (row, facts)
        assert row["slab_count"] * 2 * MIB == held, (row, facts)
        assert live_bytes <= facts["live_bytes"] * 1.01
    else:
        assert locked >= lost - held / 100, (row, facts)
        assert held <= row["slab_count"] * 2 * MIB <= facts["held_when_full_bytes"], (row, facts)
        whole = row["slab_count"] * 2 * MIB
        assert is_close(live_bytes, whole - row["slab_locked_bytes"], whole), (row, facts)
    assert live_bytes >= facts["live_bytes"] - 2 * MIB
    if piece_bytes <= MIB // 4:  # a larger piece may be alone in its page at that moment
        assert row["pieces_seen"] >= 8 * MIB // piece_bytes
    if row["read_ns"] is not None:
        # The reading is from before the worst moment, so more was free.
        assert row["read_ns"] <= row["time_ns"] + 20_000_000
        assert row["largest_request_bytes"] % (2 * MIB) == 0 and row["largest_request_bytes"] > 0
    assert 0 <= row["time_ns"] <= report["process"]["end_ns"]  # the clock ticks coarsely
    assert len(report["worst_slab_map"]) == row["slab_count"]
    live = sum(slab["live"] for slab in report["worst_slab_map"])
    assert live == live_bytes // piece_bytes
    classes = report["worst_slab_classes"]
    assert sum(each["live_count"] for each in classes) == live
    assert {each["class_bytes"] for each in classes} == {1 << (piece_bytes - 1).bit_length()}
    (holder,) = report["worst_slab_holders"]
    assert any("fill" in name for name in names_of(holder) if name)
    assert holder["of_locked_bytes"] <= row["slab_locked_bytes"]
    # The holders are copied each time that the locked bytes have grown by an eighth. They are not if
    # looking at all live allocations takes too long for the time that the process has run.
    assert holder["of_locked_bytes"] >= 14 * MIB
    assert 0.99 * holder["of_locked_bytes"] <= holder["locked_bytes"] <= holder["of_locked_bytes"]


def check_kept_although_counted(report, facts):
    """Checks a report of idle_pools, which has freed by cudaFree(). `facts`: the driver's figures, by which pools use
    more than the live bytes.
    """
    assert facts["used_bytes"] > facts["live_bytes"]
    accounts = {row["item"]: row["bytes"] for row in report["accounts"]}
    assert accounts["mempool_idle"] == facts["reserved_bytes"] - facts["live_bytes"]
    assert accounts["live_stream_ordered"] == facts["live_bytes"]
    assert accounts["unexplained"] == 0


def check_idle_pools(report, facts):
    """Checks the idle bytes of memory pools in a report against the figures that the driver gave the program."""
    (row,) = report["fragmentation"]
    assert row["mempool_idle_bytes"] == facts["reserved_bytes"] - facts["used_bytes"]
    assert row["slab_count"] == 0
    accounts = {row["item"]: row["bytes"] for row in report["accounts"]}
    assert accounts["mempool_idle"] == row["mempool_idle_bytes"]
    assert accounts["live_stream_ordered"] == facts["live_bytes"] <= facts["used_bytes"]


def check_stacks_of_slabs(report, function):
    """Checks that each slab, at the incident and at the end, lists call stacks that are in this function."""
    (incident,) = report["incidents"]
    assert {slab["incident"] for slab in report["incident_slab_map"]} == {incident["id"]}
    for table in ("incident_slab_map", "slab_map"):
        assert report[table]
        for slab in report[table]:
            assert 1 <= len(slab["stacks"]) <= min(4, slab["live"]), slab
            for stack in slab["stacks"]:
                assert report.functions({"stack": stack})[0][0] == function, (table, slab)
