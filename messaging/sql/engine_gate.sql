-- The pacer and the fence: lock the lane, judge with a new snapshot, and record the verdict. "go" commits
-- that the message is leaving before its first byte does.
CREATE FUNCTION engine_gate(
  p_message uuid, p_channel uuid, p_lease bigint, p_provider_id text,
  p_send_ttl double precision, p_busy_ttl double precision, p_figures_fresh boolean,
  OUT verdict text, OUT code text, OUT until_at timestamptz, OUT attempt integer)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE l lanes; m record; j record; t timestamptz; wait timestamptz; person uuid; own_gap double precision;
BEGIN
  PERFORM 1 FROM lanes WHERE channel_id = p_channel FOR UPDATE;
  -- The person, too: where two lanes hold messages of one stream for him, one of the gates sees the other's "go".
  -- A contact that was merged away while its lock was waited for is looked up again.
  LOOP
    SELECT contact_id INTO person FROM messages WHERE id = p_message AND stream_id IS NOT NULL;
    EXIT WHEN person IS NULL;
    PERFORM 1 FROM contacts WHERE id = person FOR NO KEY UPDATE;
    EXIT WHEN FOUND;
  END LOOP;
  PERFORM 1 FROM messages WHERE id = p_message FOR UPDATE;
  SELECT * INTO j FROM engine_judge(p_message, p_channel, p_lease, p_send_ttl, clock_timestamp());
  SELECT * INTO l FROM lanes WHERE channel_id = p_channel;
  SELECT msg.status, msg.lease, msg.priority, msg.attempt, msg.stream_id INTO m FROM messages msg WHERE msg.id = p_message;
  t := clock_timestamp();
  verdict := j.verdict; code := j.code; until_at := j.until_at; attempt := m.attempt;

  IF verdict = 'figures_stale' THEN
    IF NOT p_figures_fresh THEN RETURN; END IF;
    verdict := 'lane_later'; until_at := t + interval '1 second';
  END IF;

  IF verdict = 'stale' THEN
    -- Never begun under this lease (canceled, or taken out by evidence): the lane is free again.
    IF l.lease = p_lease AND l.busy_message = p_message
       AND NOT (m.status = 'sending' AND m.lease = p_lease) THEN
      UPDATE lanes SET busy_message = NULL, busy_until = NULL, next_at = greatest(any_at, t)
        WHERE channel_id = p_channel;
    END IF;
    RETURN;
  END IF;

  IF verdict = 'go' THEN
    IF cardinality(l.deck) = 0 THEN l.deck := engine_deck(); END IF;
    -- After a restriction the machine is slower; people among themselves are not.
    l.gap_now := (l.gap + l.gap_jitter * l.deck[1]) * CASE WHEN m.priority = 0 THEN 1 ELSE l.slowdown END;
    IF m.priority = 2 THEN
      -- A stream's own pause may only be longer; it is kept by the lane, since the gate writes no stream.
      SELECT gap INTO own_gap FROM streams WHERE id = m.stream_id;
      l.broadcast_gap_now := greatest(l.broadcast_gap, own_gap) * l.slowdown
                             + l.broadcast_gap_jitter * l.slowdown * random();
      l.broadcast_at := t + make_interval(secs => l.broadcast_gap_now);
    END IF;
    UPDATE messages msg SET status = 'sending', attempt = msg.attempt + 1, sending_at = t,
        is_new_person = j.is_new, provider_id = p_provider_id, waiting_code = '', waiting_until = NULL, error_code = '',
        error_detail = '', error_sent = '', look_ups = 0, updated_at = t
      WHERE msg.id = p_message RETURNING msg.attempt INTO attempt;
    UPDATE lanes SET deck = l.deck[2:], gap_now = l.gap_now, broadcast_gap_now = l.broadcast_gap_now,
        any_at = t + make_interval(secs => l.gap_now), broadcast_at = l.broadcast_at,
        used = used + 1, used_new = used_new + j.is_new::integer, busy_until = t + make_interval(secs => p_busy_ttl)
      WHERE channel_id = p_channel;
    IF p_provider_id IS NOT NULL THEN
      INSERT INTO receipts (channel_id, provider_id, message_id, attempt, rank, error_code, created_at)
        VALUES (p_channel, p_provider_id, p_message, engine_gate.attempt, 0, '', t)
        ON CONFLICT (channel_id, provider_id) DO UPDATE
          -- A re-used id: what an earlier attempt under it came to is not what becomes of this one.
          SET message_id = excluded.message_id, attempt = excluded.attempt, failed_at = NULL, error_code = '',
              rank = CASE WHEN receipts.failed_at IS NULL THEN receipts.rank ELSE 0 END;
    END IF;
    RETURN;
  END IF;

  wait := until_at;
  IF verdict = 'never' THEN
    UPDATE messages SET lease = NULL, waiting_code = '', waiting_until = NULL, updated_at = t,
        error_code = CASE WHEN doubted THEN 'outcome_unknown' ELSE engine_gate.code END,
        error_sent = CASE WHEN doubted THEN 'maybe' ELSE error_sent END,
        -- A retried doubt that doesn't leave again is a doubt again.
        status = CASE WHEN doubted THEN 'in_doubt' ELSE CASE engine_gate.code WHEN 'broadcast_canceled' THEN 'canceled'
                                       WHEN 'expired' THEN 'expired' ELSE 'skipped' END END
      WHERE id = p_message;
  ELSE
    IF verdict = 'message_later' THEN until_at := coalesce(until_at, t + interval '15 minutes'); END IF;
    UPDATE messages SET status = 'queued', lease = NULL, waiting_code = engine_gate.code,
        waiting_until = engine_gate.until_at, updated_at = t,
        not_before = CASE WHEN verdict = 'message_later' THEN engine_gate.until_at ELSE not_before END
      WHERE id = p_message;
  END IF;
  UPDATE lanes SET busy_message = NULL, busy_until = NULL,
      -- "lane later" without a time: only an event can tell, and whoever brings it wakes the lane.
      next_at = CASE WHEN verdict = 'lane_later' THEN wait ELSE greatest(any_at, t) END
    WHERE channel_id = p_channel;
END $$;
