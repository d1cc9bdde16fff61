Feature: Pods share cards as virtual GPUs
  Each container requests a number of cards, and memory and cores of each. The vGPU device plugin reads the cards from
  annotations of the pod, and enforces memory and cores within the container.

  Rule: Memory and cores are counted by card

    Background:
      Given the policy "virtual-gpus"
      And these nodes:
        | node  | cpu | memory | vgpus | card memory |
        | gpu-1 | 32  | 128Gi  | 2     | 24Gi        |

    @extended
    Scenario: A pod that wants two cards gets the same part of two different cards
      When these jobs are submitted:
        | job   | replicas | cpu | vgpus | vgpu memory |
        | train | 1        | 1   | 2     | 20Gi        |
      Then "train" runs
      And the pods of "train" share 2 cards

    @extended
    Scenario: A pod with all cores of a card has the card alone
      When these jobs are submitted:
        | job   | replicas | cpu | vgpus | vgpu memory | vgpu cores |
        | alone | 1        | 1   | 1     | 4Gi         | 100        |
        | half  | 2        | 1   | 1     | 4Gi         | 50         |
      Then "alone" runs
      And "half" runs
      And the pods of "half" share 1 card
      And "alone" and "half" share no card

    @extended
    Scenario: A pod waits where no card has its cores free
      Given these jobs run:
        | job  | replicas | cpu | vgpus | vgpu memory | vgpu cores |
        | busy | 2        | 1   | 1     | 4Gi         | 60         |
      When these jobs are submitted:
        | job  | replicas | cpu | vgpus | vgpu memory | vgpu cores |
        | late | 1        | 1   | 1     | 4Gi         | 50         |
      Then "late" waits because of "gpu-1: 0 of 2 cards can be used"
      And nothing is evicted

  Rule: The policy fills cards or spreads pods over them

    @extended
    Scenario: With binpack the pods fill one card of one node
      Given the policy "virtual-gpus"
      And these nodes:
        | node  | cpu | memory | vgpus | card memory |
        | gpu-1 | 32  | 128Gi  | 2     | 24Gi        |
        | gpu-2 | 32  | 128Gi  | 2     | 24Gi        |
      When these jobs are submitted:
        | job      | replicas | cpu | vgpus | vgpu memory |
        | notebook | 3        | 1   | 1     | 8Gi         |
      Then "notebook" runs
      And the pods of "notebook" share 1 card

    @extended
    Scenario: With spread each pod has a card of its own
      Given the policy "virtual-gpus-spread"
      And these nodes:
        | node  | cpu | memory | vgpus | card memory |
        | gpu-1 | 32  | 128Gi  | 2     | 24Gi        |
        | gpu-2 | 32  | 128Gi  | 2     | 24Gi        |
      When these jobs are submitted:
        | job      | replicas | cpu | vgpus | vgpu memory |
        | notebook | 4        | 1   | 1     | 8Gi         |
      Then "notebook" runs
      And the pods of "notebook" share 4 cards
